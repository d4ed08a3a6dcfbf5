/** One line of the library, and what it is broken to. */
export interface Mutation {
  readonly name: string;
  /** In `lib/`. */
  readonly file: string;
  /** Stands there once. */
  readonly from: string;
  readonly to: string;
  /** The checks that are expected to find it. */
  readonly finds: readonly string[];
}

export const MUTATIONS: readonly Mutation[];
