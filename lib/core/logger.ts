/** Where the few lines go that an operator should read. Nest's `Logger` is one. */
export interface StampedeLogger {
  /** Good to know, such as that trouble is over. */
  log(message: string): void;
  /** It works on, but somebody should look. */
  warn(message: string): void;
  /** Something was not done. */
  error(message: string): void;
}

/** For who wants none. */
export const silentLogger: StampedeLogger = { log() {}, warn() {}, error() {} };
