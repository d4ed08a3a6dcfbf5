import { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { Client } from '../../lib/redis/client.js';
import { gatherWrites } from '../../lib/redis/gather-writes.js';

test('the scripts of one turn of the event loop are written at once, and in order', async () => {
  const writes: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      writes.push(String(chunk));
      done();
    },
    writev(chunks, done) {
      writes.push(chunks.map(({ chunk }) => String(chunk)).join(''));
      done();
    },
  });
  const client = { isCluster: false, stream } as unknown as Client;
  const send = (text: string) => {
    gatherWrites(client);
    stream.write(text);
  };
  send('a');
  send('b');
  await null;
  send('c');
  await nextTurn();
  send('d');
  await nextTurn();
  expect(writes).toEqual(['abc', 'd']);
});
