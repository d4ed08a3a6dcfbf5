/** What the store had for a key: a text, nothing, or an error that says why it could not be read. */
export type Text = string | undefined | Error;

/** What a read came to: a text and, if somebody asked for it, the store's time; or why the store did not answer. */
export type Found<Start> =
  | { readonly text: Text; readonly now: number | undefined; readonly start: Start }
  | { readonly storeAway: unknown };

/** Tells those who asked for a key in the same tick what was found. */
export type Deliver<Reader, Start> = (key: string, readers: readonly Reader[], found: Found<Start>) => void;

type Read = (
  keys: readonly string[],
  withTime: boolean,
  mayLag: boolean,
) => Promise<{ readonly texts: readonly Text[]; readonly now?: number }>;

/** So many keys are read by one command, so that a batch of any size holds nobody else up for long. */
const MOST_KEYS = 500;

/**
 * The reads that start in one tick of the event loop, sent together when it ends. Who asks later is in the next batch, since
 * a reply proves nothing to those who came after its command was sent.
 */
export class Reads<Reader, Start = undefined> {
  readonly #read: Read;
  readonly #partOf: (key: string) => string;
  readonly #deliver: Deliver<Reader, Start>;
  readonly #start: () => Start;
  /** Of the batches that were sent, those whose readers have not been told yet. */
  readonly #sent: Promise<void>[] = [];
  #batch: Map<string, Reader[]> | undefined;
  #withTime = false;
  #mayLag = true;

  /**
   * @param partOf the server that a key lies on: each is asked, and fares, for itself
   * @param start called when a batch is sent; what it returns is given back with what was found
   */
  constructor(read: Read, partOf: (key: string) => string, deliver: Deliver<Reader, Start>, start: () => Start) {
    this.#read = read;
    this.#partOf = partOf;
    this.#deliver = deliver;
    this.#start = start;
  }

  /** Those whose readers have not been told yet. */
  get underWay(): readonly Promise<void>[] {
    if (!this.#batch) return this.#sent;
    // This comes to pass after the batch was sent.
    const sent = new Promise<void>((resolve) => process.nextTick(resolve));
    return [sent.then(() => Promise.all(this.#sent)).then(() => {})];
  }

  /** Those who have asked for this key in this tick. */
  waitingFor(key: string): readonly Reader[] | undefined {
    return this.#batch?.get(key);
  }

  /** @param mayLag whether a replica's answer will do; it does if it does for all of the batch */
  add(key: string, reader: Reader, withTime: boolean, mayLag = false): void {
    this.#batch ??= this.#begin();
    if (withTime) this.#withTime = true;
    if (!mayLag) this.#mayLag = false;
    const readers = this.#batch.get(key);
    if (readers) readers.push(reader);
    else this.#batch.set(key, [reader]);
  }

  #begin(): Map<string, Reader[]> {
    const batch = new Map<string, Reader[]>();
    // After the promise jobs of this tick, which are where most callers come from.
    process.nextTick(() => {
      const told = this.#sendAll(batch);
      this.#sent.push(told);
      void told.then(() => this.#sent.splice(this.#sent.indexOf(told), 1));
    });
    return batch;
  }

  #sendAll(batch: ReadonlyMap<string, readonly Reader[]>): Promise<void> {
    const withTime = this.#withTime;
    const mayLag = this.#mayLag;
    this.#batch = undefined;
    this.#withTime = false;
    this.#mayLag = true;
    const send = (keys: readonly string[]) => this.#read(keys, withTime, mayLag);
    const parts = this.#parts(batch);
    const [only] = parts;
    if (only && parts.length === 1) return this.#send(only, send);
    return Promise.all(parts.map((part) => this.#send(part, send))).then(() => {});
  }

  /** Those of each server by themselves, and not too many at once. */
  #parts(batch: ReadonlyMap<string, readonly Reader[]>): ReadonlyMap<string, readonly Reader[]>[] {
    const parts: Map<string, readonly Reader[]>[] = [];
    const filling = new Map<string, Map<string, readonly Reader[]>>();
    for (const [key, readers] of batch) {
      const name = this.#partOf(key);
      let part = filling.get(name);
      if (!part || part.size === MOST_KEYS) {
        part = new Map();
        filling.set(name, part);
        parts.push(part);
      }
      part.set(key, readers);
    }
    return parts;
  }

  #send(
    part: ReadonlyMap<string, readonly Reader[]>,
    send: (keys: readonly string[]) => ReturnType<Read>,
  ): Promise<void> {
    const start = this.#start();
    return send([...part.keys()]).then(
      ({ texts, now }) => {
        let i = 0;
        for (const [key, readers] of part) this.#deliver(key, readers, { text: texts[i++], now, start });
      },
      (storeAway) => {
        for (const [key, readers] of part) this.#deliver(key, readers, { storeAway });
      },
    );
  }
}
