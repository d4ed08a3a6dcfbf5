import { Agent, request } from 'node:http';

/**
 * So many callers at once, spread over the instances, each on a connection that was opened before.
 *
 * @param {{ instances: string[], path: string, callers: number, signal: AbortSignal }} what  `signal` ends the requests
 * @returns {Promise<{ answers: { status: number, body: unknown }[], total: number, p50: number, p99: number }>}
 *   times in milliseconds, each caller's from the start of the crowd
 */
export async function stampede({ instances, path, callers, signal }) {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: callers });
  signal.addEventListener('abort', () => agent.destroy(), { once: true });
  const crowd = (path) =>
    Promise.all(Array.from({ length: callers }, (_, i) => call(agent, instances[i % instances.length] + path)));
  try {
    await crowd('/health');
    const start = performance.now();
    const answers = await crowd(path);
    const times = answers.map(({ at }) => at - start).sort((left, right) => left - right);
    return { answers, total: times.at(-1), p50: percentile(times, 50), p99: percentile(times, 99) };
  } finally {
    agent.destroy();
  }
}

/** One GET. A request that fails is an answer too, of status 0. */
function call(agent, url) {
  return new Promise((resolve) => {
    const answer = (status, body) => resolve({ status, body, at: performance.now() });
    request(url, { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => answer(response.statusCode, text));
      response.on('error', (error) => answer(0, error.message));
    })
      .on('error', (error) => answer(0, error.message))
      .end();
  });
}

/** The nearest rank. */
function percentile(sorted, percent) {
  return sorted[Math.ceil((percent / 100) * sorted.length) - 1];
}
