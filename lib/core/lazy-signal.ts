/** A signal that is made when somebody looks at it: most never do, and making one costs more than all the rest of a load. */
export class LazySignal {
  /** Called once, when it aborts. */
  onAbort: ((reason: unknown) => void) | undefined;
  #controller: AbortController | undefined;
  #aborted: { readonly reason: unknown } | undefined;

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  /** Whether it has aborted, without making it. */
  get isAborted(): boolean {
    return this.#aborted !== undefined;
  }

  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
    this.onAbort?.(reason);
  }
}
