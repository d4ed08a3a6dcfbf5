/** Where the value comes from that a call is answered with. */
export type Provenance =
  /** It was stored, and is fresh for so many milliseconds more; `undefined` when it was stored just now. */
  | { readonly is: 'hit'; readonly left: number | undefined }
  /** The store is away, and it was loaded here a moment ago. It is stored nowhere. */
  | { readonly is: 'kept' }
  /** It is no longer fresh, for so many milliseconds. */
  | { readonly is: 'stale'; readonly reason: StaleReason; readonly since: number }
  /** It was loaded for this call, or for one that this call joined; `stored`, it is fresh for so many milliseconds. */
  | { readonly is: 'load'; readonly stored: number | undefined };

/** Why a value that is no longer fresh was answered. */
export type StaleReason = 'while-revalidate' | 'if-error' | 'soft-timeout' | 'wait-timeout';
