/** What the store had for a key: a text, nothing, or an error that says why it could not be read. */
export type Found = string | undefined | Error;

/** The read had no reply. */
export const STORE_AWAY = Symbol('store away');

/** Whoever asked for a key; told once what was found, together with the others who asked for it in the same tick. */
export type Deliver<Reader> = (key: string, readers: readonly Reader[], found: Found | typeof STORE_AWAY) => void;

/**
 * The reads that start in one tick of the event loop, sent together when it ends. Who asks later is in the next batch, since
 * a reply proves nothing to those who came after its command was sent.
 */
export class Reads<Reader> {
  readonly #read: (keys: readonly string[]) => Promise<readonly Found[]>;
  readonly #deliver: Deliver<Reader>;
  readonly #underWay = new Set<Promise<void>>();
  #batch: Map<string, Reader[]> | undefined;

  constructor(read: (keys: readonly string[]) => Promise<readonly Found[]>, deliver: Deliver<Reader>) {
    this.#read = read;
    this.#deliver = deliver;
  }

  /** Those whose readers have not been told yet. */
  get underWay(): Iterable<Promise<void>> {
    return this.#underWay;
  }

  add(key: string, readers: readonly Reader[]): void {
    this.#batch ??= this.#begin();
    const batched = this.#batch.get(key);
    if (batched) batched.push(...readers);
    else this.#batch.set(key, [...readers]);
  }

  #begin(): Map<string, Reader[]> {
    const batch = new Map<string, Reader[]>();
    // After the promise jobs of this tick, which are where most callers come from.
    const told = new Promise<void>((resolve) => process.nextTick(() => resolve(this.#send(batch))));
    this.#underWay.add(told);
    void told.finally(() => this.#underWay.delete(told));
    return batch;
  }

  #send(batch: ReadonlyMap<string, readonly Reader[]>): Promise<void> {
    this.#batch = undefined;
    return this.#read([...batch.keys()]).then(
      (found) => {
        let i = 0;
        for (const [key, readers] of batch) this.#deliver(key, readers, found[i++]);
      },
      () => {
        for (const [key, readers] of batch) this.#deliver(key, readers, STORE_AWAY);
      },
    );
  }
}
