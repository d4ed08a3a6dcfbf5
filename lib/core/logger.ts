/** Where the few lines go that an operator should read. Nest's `Logger` is one. */
export interface StampedeLogger {
  log(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** For who wants none. */
export const silentLogger: StampedeLogger = { log() {}, warn() {}, error() {} };
