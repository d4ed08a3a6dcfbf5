/** What the store had for a key: a text, nothing, or an error that says why it could not be read. */
export type Text = string | undefined | Error;

/** What a read came to: a text and, if somebody asked for it, the store's time; or why the store did not answer. */
export type Found = { readonly text: Text; readonly now: number | undefined } | { readonly storeAway: unknown };

/** Tells those who asked for a key in the same tick what was found. */
export type Deliver<Reader> = (key: string, readers: readonly Reader[], found: Found) => void;

type Read = (
  keys: readonly string[],
  withTime: boolean,
) => Promise<{ readonly texts: readonly Text[]; readonly now?: number }>;

/**
 * The reads that start in one tick of the event loop, sent together when it ends. Who asks later is in the next batch, since
 * a reply proves nothing to those who came after its command was sent.
 */
export class Reads<Reader> {
  readonly #read: Read;
  readonly #deliver: Deliver<Reader>;
  #batch: Map<string, Reader[]> | undefined;
  #withTime = false;

  constructor(read: Read, deliver: Deliver<Reader>) {
    this.#read = read;
    this.#deliver = deliver;
  }

  add(key: string, readers: readonly Reader[], withTime: boolean): void {
    // After the promise jobs of this tick, which are where most callers come from.
    if (!this.#batch) process.nextTick(() => this.#send());
    this.#batch ??= new Map();
    this.#withTime ||= withTime;
    const batched = this.#batch.get(key);
    if (batched) batched.push(...readers);
    else this.#batch.set(key, [...readers]);
  }

  #send(): void {
    const batch = this.#batch ?? new Map<string, Reader[]>();
    const withTime = this.#withTime;
    this.#batch = undefined;
    this.#withTime = false;
    this.#read([...batch.keys()], withTime).then(
      ({ texts, now }) => {
        let i = 0;
        for (const [key, readers] of batch) this.#deliver(key, readers, { text: texts[i++], now });
      },
      (storeAway) => {
        for (const [key, readers] of batch) this.#deliver(key, readers, { storeAway });
      },
    );
  }
}
