import { LoadTimeoutError, RemoteLoadError } from './errors.js';
import { messageOf } from './message-of.js';

/**
 * Carries an error to the processes that waited for the load that threw it.
 *
 * `encode` answers `undefined` for an error that isn't its business; `decode` answers `undefined` for a text that isn't.
 */
export interface ErrorCodec {
  /** The text to send, or `undefined` for an error that is not its business. */
  encode(error: unknown): string | undefined;
  /** The error that a text stands for, or `undefined` for a text that is not its own. */
  decode(text: string): unknown;
}

interface WrittenError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly loadTimeout?: { readonly key: string; readonly maxLoad: number };
}

/** Any error, as a `RemoteLoadError`; a `LoadTimeoutError` as one. */
export const remoteErrorCodec: ErrorCodec = {
  encode(error) {
    const { name, code } = Object(error) as { name?: unknown; code?: unknown };
    const written: WrittenError = {
      name: typeof name === 'string' ? name : 'Error',
      message: messageOf(error),
      ...(typeof code === 'string' && { code }),
      ...(error instanceof LoadTimeoutError && { loadTimeout: { key: error.key, maxLoad: error.maxLoad } }),
    };
    return JSON.stringify(written);
  },
  decode(text) {
    const written = JSON.parse(text) as WrittenError;
    if (written.loadTimeout) return new LoadTimeoutError(written.loadTimeout.key, written.loadTimeout.maxLoad);
    return new RemoteLoadError(written);
  },
};

/** What a load came to, as followers in other processes get it. */
export type Outcome =
  | { readonly is: 'value'; readonly payload: string }
  | { readonly is: 'error'; readonly text: string };

/** What the text of an error's outcome begins with; stores look at that. */
export const ERROR_OUTCOME = 'e';

export function formatOutcome(outcome: Outcome): string {
  return outcome.is === 'value' ? `v${outcome.payload}` : `${ERROR_OUTCOME}${outcome.text}`;
}

export function parseOutcome(text: string): Outcome | undefined {
  if (text.startsWith('v')) return { is: 'value', payload: text.slice(1) };
  if (text.startsWith(ERROR_OUTCOME)) return { is: 'error', text: text.slice(1) };
  return undefined;
}
