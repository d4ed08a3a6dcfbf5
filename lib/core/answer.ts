import { type Codec, encodeWith } from './codec.js';
import type { Isolation } from './options.js';

/** One value for many callers, given to each the way it asked for. */
export class Answer {
  readonly #codec: Codec;
  readonly #value: unknown;
  #payload: string | undefined;
  #frozen: { readonly value: unknown } | undefined;

  private constructor(codec: Codec, value: unknown, payload: string | undefined) {
    this.#codec = codec;
    this.#value = value;
    this.#payload = payload;
  }

  /** @throws what the codec throws when the text can't be decoded */
  static decode(payload: string, codec: Codec): Answer {
    return new Answer(codec, codec.decode(payload), payload);
  }

  /** A value fresh from the loader, with the codec's text where that is known already. */
  static loaded(value: unknown, codec: Codec, payload?: string): Answer {
    return new Answer(codec, value, payload);
  }

  /** Of the codec's text; 0 when that isn't known. */
  get length(): number {
    return this.#payload?.length ?? 0;
  }

  for(isolate: Isolation): unknown {
    if (isolate === 'none') return this.#value;
    if (isolate === 'decode') return this.#copy();
    // A copy is frozen, not the loader's own object, which its maker may still change.
    this.#frozen ??= { value: this.#copy(deepFreeze) };
    return this.#frozen.value;
  }

  /** Of a value that the codec can't encode, or not decode again, there are no copies. */
  #copy(finish: (copy: unknown) => unknown = (copy) => copy): unknown {
    let copy: unknown;
    try {
      this.#payload ??= encodeWith(this.#codec, this.#value);
      copy = this.#codec.decode(this.#payload);
    } catch {
      return this.#value;
    }
    return finish(copy);
  }
}

/** Without recursion, since values may be nested deeper than the stack; without calling getters, which may throw. */
function deepFreeze(root: unknown): unknown {
  const left = [root];
  while (left.length > 0) {
    const value = left.pop();
    // The elements of a typed array can't be frozen; trying throws.
    if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value)) continue;
    Object.freeze(value);
    for (const key of Reflect.ownKeys(value)) left.push(Reflect.getOwnPropertyDescriptor(value, key)?.value);
  }
  return root;
}
