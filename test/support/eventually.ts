/**
 * `eventually(check, { within })`: polls a condition until it holds, and returns what it returned.
 *
 * The condition holds when `check` returns (or resolves to) a truthy value; an error from it means "not yet". For real
 * servers and processes only: tests of time use the test clock.
 */
export interface EventuallyOptions {
  /** Milliseconds until it fails; 5 s by default. */
  within?: number;
  /** Milliseconds between two checks; 20 by default. */
  every?: number;
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>;

export async function eventually<T>(
  check: () => T | Promise<T>,
  { within = 5000, every = 20 }: EventuallyOptions = {},
): Promise<Truthy<T>> {
  const deadline = performance.now() + within;
  for (;;) {
    let cause: unknown;
    try {
      const value = await check();
      if (value) return value as Truthy<T>;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline) {
      const last = cause instanceof Error ? `: ${cause.message}` : '';
      throw new Error(`did not hold within ${within} ms${last}\n${check.toString()}`, { cause });
    }
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}
