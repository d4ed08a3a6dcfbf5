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

/** So many keys are read together at most, so that a batch of any size holds nobody else up for long. */
export const MOST_KEYS = 500;
/**
 * When the server has nothing else of ours to read, the first of a tick are fewer, and then twice as many each time: so it begins
 * early, and works while we do. While it has, more would only be more commands.
 */
const FIRST_KEYS = 8;

/**
 * The reads that start in one tick of the event loop, sent when it ends, or as soon as they are many. Who asks later is in the
 * next batch, since a reply proves nothing to those who came after its command was sent.
 */
export class Reads<Reader, Start = undefined> {
  readonly #read: Read;
  readonly #partOf: (key: string) => string;
  readonly #deliver: Deliver<Reader, Start>;
  readonly #start: () => Start;
  readonly #first: number;
  /** Of the batches that were sent, those whose readers have not been told yet. */
  readonly #sent: Promise<void>[] = [];
  #batch: Map<string, Reader[]> | undefined;
  /** So many keys are in this batch at most. */
  #most = MOST_KEYS;
  #isTogether = false;
  /** Nothing was asked for in this tick yet. */
  #isNewTick = true;
  /** Not how many are in `#sent`: those still are while their callers, just told, ask for more. */
  #unanswered = 0;
  #withTime = false;
  #mayLag = true;

  /**
   * @param partOf the server that a key lies on: each is asked, and fares, for itself
   * @param start called when a batch is sent; what it returns is given back with what was found
   * @param first after so many keys the first batch of a tick doesn't wait for its end, unless another is under way
   */
  constructor(
    read: Read,
    partOf: (key: string) => string,
    deliver: Deliver<Reader, Start>,
    start: () => Start,
    first = FIRST_KEYS,
  ) {
    this.#read = read;
    this.#partOf = partOf;
    this.#deliver = deliver;
    this.#start = start;
    this.#first = first;
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
    const readers = this.#batch?.get(key);
    if (!readers && this.#batch && this.#batch.size >= (this.#isTogether ? MOST_KEYS : this.#most)) {
      this.#most = Math.min(2 * this.#most, MOST_KEYS);
      this.#send(this.#batch);
    }
    if (withTime) this.#withTime = true;
    if (!mayLag) this.#mayLag = false;
    this.#batch ??= this.#begin();
    if (readers) readers.push(reader);
    else this.#batch.set(key, [reader]);
  }

  /** What is added meanwhile is one batch, since its caller waits for all of it. */
  together(add: () => void): void {
    this.#isTogether = true;
    add();
    this.#isTogether = false;
  }

  #begin(): Map<string, Reader[]> {
    const batch = new Map<string, Reader[]>();
    if (this.#isNewTick) this.#most = this.#unanswered > 0 ? MOST_KEYS : this.#first;
    this.#isNewTick = false;
    // After the promise jobs of this tick, which are where most callers come from.
    process.nextTick(() => {
      this.#isNewTick = true;
      if (this.#batch === batch) this.#send(batch);
    });
    return batch;
  }

  #send(batch: ReadonlyMap<string, readonly Reader[]>): void {
    this.#batch = undefined;
    const told = this.#sendParts(batch);
    this.#sent.push(told);
    void told.then(() => this.#sent.splice(this.#sent.indexOf(told), 1));
  }

  #sendParts(batch: ReadonlyMap<string, readonly Reader[]>): Promise<void> {
    const withTime = this.#withTime;
    const mayLag = this.#mayLag;
    this.#withTime = false;
    this.#mayLag = true;
    const send = (keys: readonly string[]) => this.#read(keys, withTime, mayLag);
    const parts = this.#parts(batch);
    const [only] = parts;
    if (only && parts.length === 1) return this.#sendPart(only, send);
    return Promise.all(parts.map((part) => this.#sendPart(part, send))).then(() => {});
  }

  /** Those of each server by themselves. Mostly there is only one; whose a key is, costs something on a Cluster. */
  #parts(batch: ReadonlyMap<string, readonly Reader[]>): ReadonlyMap<string, readonly Reader[]>[] {
    if (batch.size === 1) return [batch];
    const names = Array.from(batch.keys(), this.#partOf);
    if (names.every((name) => name === names[0])) return [batch];
    const parts = new Map<string, Map<string, readonly Reader[]>>();
    for (const [i, [key, readers]] of [...batch].entries()) {
      const name = names[i] as string;
      const part = parts.get(name) ?? new Map<string, readonly Reader[]>();
      parts.set(name, part);
      part.set(key, readers);
    }
    return [...parts.values()];
  }

  #sendPart(
    part: ReadonlyMap<string, readonly Reader[]>,
    send: (keys: readonly string[]) => ReturnType<Read>,
  ): Promise<void> {
    const start = this.#start();
    this.#unanswered += 1;
    return send([...part.keys()]).then(
      ({ texts, now }) => {
        this.#unanswered -= 1;
        let i = 0;
        for (const [key, readers] of part) this.#deliver(key, readers, { text: texts[i++], now, start });
      },
      (storeAway) => {
        this.#unanswered -= 1;
        for (const [key, readers] of part) this.#deliver(key, readers, { storeAway });
      },
    );
  }
}
