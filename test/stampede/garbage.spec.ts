/**
 * What a hit leaves behind has to die young. V8 puts some things where only a full collection finds them, such as functions
 * that are written as the values of properties, and what they know of stays with them: hits were half as fast for it.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, jest, test } from '@jest/globals';
import { startRedis } from '../support/redis-server.js';

jest.setTimeout(120_000);

const WORKER = fileURLToPath(new URL('./garbage.worker.mjs', import.meta.url));
/** What is stored for each key, in characters. */
const LENGTH = 2_000;

test.each(['getOrLoad', 'decorator', 'interceptor'])(
  'of hits through %s next to nothing is left until a full collection',
  async (through) => {
    const redis = await startRedis();
    try {
      const options = JSON.stringify({ port: redis.port, length: LENGTH, through });
      const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', WORKER, options]);
      const left = Number(stdout);
      expect(left).not.toBeNaN();
      expect(left).toBeLessThan(LENGTH / 4);
    } finally {
      await redis.stop();
    }
  },
);
