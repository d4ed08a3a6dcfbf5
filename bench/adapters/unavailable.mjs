/** What is to be measured isn't there; the system is left out of the run. */
export class UnavailableError extends Error {
  name = 'UnavailableError';
}
