import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const library = pathToFileURL(join(import.meta.dirname, '../../dist/lib/index.js')).href;

test('one signal may end any number of calls: Node warns of no leak', async () => {
  const script = `
    import { createStampede, MemoryStore } from '${library}';
    const { cache, close } = createStampede({ store: new MemoryStore() });
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 50 }, (_, i) => cache.getOrLoad('key ' + i, () => i, { ttl: '60s', signal })));
    await close();
    console.log('answered');
  `;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
  expect(stdout.trim()).toBe('answered');
  expect(stderr).toBe('');
});
