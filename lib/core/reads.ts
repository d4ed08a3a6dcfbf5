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
) => Promise<{ readonly texts: readonly Text[]; readonly now?: number }>;

/** So many keys are read by one command, so that a batch of any size holds nobody else up for long. */
const MOST_KEYS = 500;

/**
 * The reads that start in one tick of the event loop, sent together when it ends. Who asks later is in the next batch, since
 * a reply proves nothing to those who came after its command was sent.
 */
export class Reads<Reader, Start = undefined> {
  readonly #read: Read;
  readonly #deliver: Deliver<Reader, Start>;
  readonly #start: () => Start;
  readonly #underWay = new Set<Promise<void>>();
  #batch: Map<string, Reader[]> | undefined;
  #withTime = false;

  /** @param start called when a batch is sent; what it returns is given back with what was found */
  constructor(read: Read, deliver: Deliver<Reader, Start>, start: () => Start) {
    this.#read = read;
    this.#deliver = deliver;
    this.#start = start;
  }

  /** Those whose readers have not been told yet. */
  get underWay(): Iterable<Promise<void>> {
    return this.#underWay;
  }

  add(key: string, reader: Reader, withTime: boolean): void {
    this.#batch ??= this.#begin();
    if (withTime) this.#withTime = true;
    const readers = this.#batch.get(key);
    if (readers) readers.push(reader);
    else this.#batch.set(key, [reader]);
  }

  #begin(): Map<string, Reader[]> {
    const batch = new Map<string, Reader[]>();
    // After the promise jobs of this tick, which are where most callers come from.
    const told = new Promise<void>((resolve) => process.nextTick(() => resolve(this.#sendAll(batch))));
    this.#underWay.add(told);
    void told.then(() => this.#underWay.delete(told));
    return batch;
  }

  #sendAll(batch: ReadonlyMap<string, readonly Reader[]>): Promise<void> {
    const withTime = this.#withTime;
    this.#batch = undefined;
    this.#withTime = false;
    if (batch.size <= MOST_KEYS) return this.#send(batch, withTime);
    const all = [...batch];
    const parts: Promise<void>[] = [];
    for (let from = 0; from < all.length; from += MOST_KEYS) {
      parts.push(this.#send(new Map(all.slice(from, from + MOST_KEYS)), withTime));
    }
    return Promise.all(parts).then(() => {});
  }

  #send(batch: ReadonlyMap<string, readonly Reader[]>, withTime: boolean): Promise<void> {
    const start = this.#start();
    return this.#read([...batch.keys()], withTime).then(
      ({ texts, now }) => {
        let i = 0;
        for (const [key, readers] of batch) this.#deliver(key, readers, { text: texts[i++], now, start });
      },
      (storeAway) => {
        for (const [key, readers] of batch) this.#deliver(key, readers, { storeAway });
      },
    );
  }
}
