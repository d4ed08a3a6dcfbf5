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

/** Reads an entry; `undefined` when the text isn't one, or is cut. */
export function parseEntry(text: string): Entry | undefined {
  if (!text.startsWith('1;')) return undefined;
  // Stores take anything but digits for no entry; so must this, or nobody would ever overwrite it.
  const afterFresh = endOfDigits(text, 2);
  const afterLoad = endOfDigits(text, afterFresh + 1);
  const afterLength = endOfDigits(text, afterLoad + 1);
  if (afterLength < 0) return undefined;
  const start = afterLength + 1;
  if (text.length - start !== numberAt(text, afterLoad + 1, afterLength)) return undefined;
  return {
    payload: text.slice(start),
    freshUntil: afterFresh === 2 ? undefined : numberAt(text, 2, afterFresh),
    loadTime: numberAt(text, afterFresh + 1, afterLoad),
  };
}

const [ZERO, NINE, SEMICOLON] = [48, 57, 59];

/** Where the semicolon is that ends the digits which begin here; -1 when something else does, or nothing. */
function endOfDigits(text: string, start: number): number {
  if (start === 0) return -1;
  for (let i = start; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === SEMICOLON) return i;
    if (code < ZERO || code > NINE) return -1;
  }
  return -1;
}

/** Digit by digit: this is done for each hit, and needs no text of its own. */
function numberAt(text: string, start: number, end: number): number {
  let number = 0;
  for (let i = start; i < end; i += 1) number = number * 10 + text.charCodeAt(i) - ZERO;
  return number;
}

/** The same entry, fresh until another moment: what a store does by its own clock. */
export function stampEntry(text: string, freshUntil: number): string {
  return `1;${freshUntil}${text.slice(text.indexOf(';', 2))}`;
}
