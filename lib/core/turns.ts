/** A place in the line for one key. */
export interface Turn {
  /** Resolves when it is this one's turn. */
  readonly come: Promise<void>;
  readonly hasCome: boolean;
  /** Passes the turn on, or leaves the line before it came. */
  pass(): void;
}

/** Lines, one a key: of all who want a lock in one process, one at a time asks the store. */
export class Turns {
  readonly #lines = new Map<string, (() => void)[]>();

  isTaken(key: string): boolean {
    return this.#lines.has(key);
  }

  take(key: string): Turn {
    let hasCome = false;
    let call: () => void = () => {};
    const come = new Promise<void>((resolve) => {
      call = () => {
        hasCome = true;
        resolve();
      };
    });
    const line = this.#lines.get(key);
    if (line) line.push(call);
    else {
      this.#lines.set(key, []);
      call();
    }
    let passed = false;
    const pass = () => {
      if (passed) return;
      passed = true;
      this.#leave(key, call);
    };
    return {
      come,
      get hasCome() {
        return hasCome;
      },
      pass,
    };
  }

  #leave(key: string, call: () => void): void {
    const line = this.#lines.get(key) ?? [];
    const place = line.indexOf(call);
    if (place >= 0) {
      line.splice(place, 1);
      return;
    }
    const next = line.shift();
    if (next) next();
    else this.#lines.delete(key);
  }
}
