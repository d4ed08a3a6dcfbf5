import type { Answer } from './answer.js';
import { type Background, Caller } from './caller.js';
import type { Clock } from './clock.js';
import type { Gathering } from './gathering.js';
import type { Provenance } from './provenance.js';
import type { ResolvedLoadOptions } from './resolved-options.js';

/** One key of a call for many: a caller like any other, but for its loader, which is shared with the call's other keys. */
export class KeyCaller extends Caller {
  /** The gathering takes a place, for all of its keys. */
  override readonly takesPlace = false;
  readonly #key: string;
  readonly #gathering: Gathering;

  constructor(
    key: string,
    gathering: Gathering,
    options: ResolvedLoadOptions,
    startedAt: number,
    background?: Background,
  ) {
    super((signal) => gathering.load(key, signal), options, startedAt, background);
    this.#key = key;
    this.#gathering = gathering;
    gathering.expect(key);
  }

  override answer(answer: Answer, provenance: Provenance): void {
    super.answer(answer, provenance);
    this.#gathering.decided(this.#key);
  }

  override fail(reason: unknown): void {
    super.fail(reason);
    this.#gathering.decided(this.#key);
  }

  /** Somebody else loads it. */
  override startDeadline(clock: Clock, ended: () => void): void {
    super.startDeadline(clock, ended);
    this.#gathering.decided(this.#key);
  }

  protected override standIn(options: ResolvedLoadOptions, startedAt: number, background: Background): Caller {
    return new KeyCaller(this.#key, this.#gathering.background, options, startedAt, background);
  }
}
