/** Lines, one a key: of all who want a lock in one process, one at a time asks the store. */
export class Turns {
  /** Who waits, behind the one whose turn it is. */
  readonly #lines = new Map<string, Turn[]>();

  isTaken(key: string): boolean {
    return this.#lines.has(key);
  }

  take(key: string): Turn {
    const line = this.#lines.get(key);
    const turn = new Turn(this, key, line === undefined);
    if (line) line.push(turn);
    else this.#lines.set(key, []);
    return turn;
  }

  /** @internal Leaves the line, or makes way for the next in it. */
  leave(turn: Turn): void {
    const { key } = turn;
    const line = this.#lines.get(key) ?? [];
    const place = line.indexOf(turn);
    if (place >= 0) {
      line.splice(place, 1);
      return;
    }
    const next = line.shift();
    if (next) next.begin();
    else this.#lines.delete(key);
  }
}

/** A place in the line for one key. */
export class Turn {
  readonly key: string;
  readonly #turns: Turns;
  #hasCome: boolean;
  #hasPassed = false;
  #come: (() => void) | undefined;

  constructor(turns: Turns, key: string, hasCome: boolean) {
    this.#turns = turns;
    this.key = key;
    this.#hasCome = hasCome;
  }

  get hasCome(): boolean {
    return this.#hasCome;
  }

  /** Resolves when it is this one's turn. To be asked for once, by who waits. */
  untilItComes(): Promise<void> {
    return new Promise((resolve) => {
      this.#come = resolve;
      if (this.#hasCome) resolve();
    });
  }

  /** @internal It is this one's turn. */
  begin(): void {
    this.#hasCome = true;
    this.#come?.();
  }

  /** Passes the turn on, or leaves the line before it came. */
  pass(): void {
    if (this.#hasPassed) return;
    this.#hasPassed = true;
    this.#turns.leave(this);
  }
}
