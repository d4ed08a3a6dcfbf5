/**
 * A value as it lies in the store: `1;<fresh until>;<load time>;<length>;<payload>`.
 *
 * - `1` is the format's version; a text of another version is a miss and is overwritten.
 * - fresh until: milliseconds since the epoch in the store's own time, stamped by the store; empty when the store's expiry
 *   alone decides.
 * - load time: milliseconds the loader took.
 * - length: of the payload, in UTF-16 code units, so that a text cut short is never taken for a value.
 */
export interface Entry {
  /** The codec's text. */
  readonly payload: string;
  /** Milliseconds since the epoch, in the store's time; `undefined` when the entry is fresh as long as it is there. */
  readonly freshUntil: number | undefined;
  /** Milliseconds the loader took. */
  readonly loadTime: number;
}

/** The text of an entry whose freshness the store's expiry decides, or will stamp. */
export function formatEntry(payload: string, loadTime: number): string {
  return `1;;${Math.round(loadTime)};${payload.length};${payload}`;
}

const DIGITS = /^\d*$/;

/** Reads an entry; `undefined` when the text isn't one, or is cut. */
export function parseEntry(text: string): Entry | undefined {
  if (!text.startsWith('1;')) return undefined;
  const afterFresh = text.indexOf(';', 2);
  const afterLoad = text.indexOf(';', afterFresh + 1);
  const afterLength = text.indexOf(';', afterLoad + 1);
  if (afterFresh < 0 || afterLoad < 0 || afterLength < 0) return undefined;
  const payload = text.slice(afterLength + 1);
  if (payload.length !== Number(text.slice(afterLoad + 1, afterLength))) return undefined;
  // Stores take anything but digits for no entry; so must this, or nobody would ever overwrite it.
  if (!DIGITS.test(text.slice(2, afterFresh)) || !DIGITS.test(text.slice(afterFresh + 1, afterLoad))) return undefined;
  return {
    payload,
    freshUntil: afterFresh === 2 ? undefined : Number(text.slice(2, afterFresh)),
    loadTime: Number(text.slice(afterFresh + 1, afterLoad)),
  };
}

/** The same entry, fresh until another moment: what a store does by its own clock. */
export function stampEntry(text: string, freshUntil: number): string {
  return `1;${freshUntil}${text.slice(text.indexOf(';', 2))}`;
}
