/**
 * The worker's side of `processes.ts`: `serve({ method(…args) {} })` in a script answers `worker.call('method', …args)`.
 * Plain JavaScript, because Node runs it as it is.
 */
export function serve(methods) {
  process.on('message', async ({ id, method, args }) => {
    try {
      if (!Object.hasOwn(methods, method)) throw new TypeError(`the worker serves no method "${method}"`);
      send({ type: 'result', id, value: await methods[method](...args) });
    } catch (error) {
      send({ type: 'error', id, error: describe(error) });
    }
  });
  // The process goes on, so that a test sees what else happens; the test fails all the same.
  process.on('unhandledRejection', (error) => send({ type: 'unhandled', error: describe(error) }));
  process.on('uncaughtException', (error) => send({ type: 'unhandled', error: describe(error) }));
  // What the library's users would see in their logs, and take for a leak.
  process.on('warning', (warning) => {
    if (warning.name === 'MaxListenersExceededWarning') send({ type: 'unhandled', error: describe(warning) });
  });
  process.on('disconnect', () => process.exit());
  send({ type: 'ready' });
}

function send(message) {
  if (process.connected) process.send(message);
}

/** An error as plain data: a clone of one keeps neither its name nor its properties. */
function describe(error) {
  if (!(error instanceof Error)) return { name: 'NonError', message: String(error), properties: {} };
  const plain = Object.entries(error).filter(
    ([, value]) => value === null || !/function|object|symbol/.test(typeof value),
  );
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    properties: Object.fromEntries(plain),
    cause: error.cause === undefined ? undefined : describe(error.cause),
  };
}
