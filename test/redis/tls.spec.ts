import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { createStampede, type Stampede } from '../../lib/core/create.js';
import type { ConnectionOption } from '../../lib/redis/connection-source.js';
import { rightsFor } from '../../lib/redis/rights.js';
import { type Crowd, startCrowd } from '../stampede/crowd.js';
import { type Certificate, makeCertificate, startTlsRedis } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import type { RedisServer } from '../support/redis-server.js';
import { newStore, untilListening } from './redis-stores.js';

let certificate: Certificate;
let redis: RedisServer;
let tlsPort: number;
const open: Stampede[] = [];

beforeAll(async () => {
  certificate = makeCertificate();
  const users = [
    'user default on nopass ~* &* +@all',
    `user app on >secret ~test:* resetchannels &test:* ${rightsFor({ replicas: 0, readFrom: 'primary' })}`,
  ];
  ({ redis, tlsPort } = await startTlsRedis(certificate, { users: users.join('\n') }));
});
afterAll(async () => {
  await redis.stop();
  certificate.remove();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function start(connection: ConnectionOption): Promise<Stampede> {
  const stampede = createStampede({ store: newStore({ connection }) });
  open.push(stampede);
  await stampede.start();
  return stampede;
}

const app = { username: 'app', password: 'secret' };
const ways: [string, () => ConnectionOption][] = [
  [
    'a rediss:// URL, with the authority beside it',
    () => () =>
      new Redis(`rediss://app:secret@127.0.0.1:${tlsPort}`, { tls: { ca: certificate.ca }, lazyConnect: true }),
  ],
  ['options', () => ({ host: '127.0.0.1', port: tlsPort, tls: { ca: certificate.ca }, ...app })],
];

test.each(ways)('%s: loads, evicts and locks as a user with the least rights', async (_way, connection) => {
  const [one, two] = await Promise.all([start(connection()), start(connection())]);
  await redis.client().flushall();
  let loads = 0;
  const load = ({ cache }: Stampede) =>
    cache.getOrLoad(
      'key',
      async () => {
        loads += 1;
        await new Promise((resolve) => setTimeout(resolve, 50));
        return loads;
      },
      '60s',
    );
  expect(await Promise.all([load(one), load(two), load(one)])).toEqual([1, 1, 1]);
  await two.cache.evict('key');
  expect(await load(one)).toBe(2);
  await two.locks.withLock('lock', {}, async (lock) => expect(lock.signal.aborted).toBe(false));
});

test('commands and wake-ups travel by TLS, two connections a store', async () => {
  const store = newStore({ connection: { host: '127.0.0.1', port: tlsPort, tls: { ca: certificate.ca }, ...app } });
  const listening = untilListening(store);
  await store.start();
  await listening;
  const clients = String(await redis.client().client('LIST'))
    .trim()
    .split('\n');
  const ours = clients.filter((client) => client.includes('user=app'));
  expect(ours.map((client) => / laddr=(\S+)/.exec(client)?.[1])).toEqual(Array(2).fill(`127.0.0.1:${tlsPort}`));
  expect(ours.filter((client) => / sub=1 /.test(client))).toHaveLength(1);
  await store.close();
});

test('processes that trust the authority need no more than a rediss:// URL', async () => {
  process.env['NODE_EXTRA_CA_CERTS'] = certificate.file;
  let crowd: Crowd | undefined;
  try {
    crowd = await startCrowd({ connection: `rediss://app:secret@127.0.0.1:${tlsPort}`, namespace: 'test' }, 2);
    const answers = await crowd.ask('crowd', { callers: 20, load: { takes: 200, gives: 'x' } });
    expect(answers.filter(({ value }) => value === 'x')).toHaveLength(40);
    expect(crowd.loads('crowd')).toHaveLength(1);
  } finally {
    delete process.env['NODE_EXTRA_CA_CERTS'];
    await crowd?.stop();
  }
});

test.each([
  [
    'a certificate that nobody vouches for',
    () => ({ host: '127.0.0.1', port: tlsPort, tls: {}, ...app }),
    /self.signed/,
  ],
  [
    'a name that isn’t the certificate’s',
    () => ({ host: '127.0.0.1', port: tlsPort, tls: { ca: certificate.ca, servername: 'other.example' }, ...app }),
    /altnames|does not match/i,
  ],
])('%s is no connection, and the reason is told', async (_what, connection, reason) => {
  const store = newStore({ connection: connection(), connectTimeout: 1_500 });
  const error = await store.start().catch((cause) => cause);
  await store.close();
  expect(error.message).toMatch(/^No connection to Redis/);
  expect(error.message).toMatch(reason);
});

test('a Cluster by TLS', async () => {
  const args = ['--cluster-enabled', 'yes', '--tls-cluster', 'yes'];
  const { redis: node, tlsPort: port } = await startTlsRedis(certificate, { args });
  try {
    // A Cluster of one.
    for (let from = 0; from < 16_384; from += 4_096) {
      await node.client().call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: 4_096 }, (_, i) => from + i));
    }
    await eventually(async () => String(await node.client().call('CLUSTER', 'INFO')).includes('cluster_state:ok'));
    const { cache } = await start(
      new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true, redisOptions: { tls: { ca: certificate.ca } } }),
    );
    const keys = Array.from({ length: 20 }, (_, i) => `key${i}`);
    const ask = (value: string) => Promise.all(keys.map((key) => cache.getOrLoad(key, () => value, '60s')));
    expect(await ask('first')).toEqual(keys.map(() => 'first'));
    expect(await ask('second')).toEqual(keys.map(() => 'first'));
    await Promise.all(open.splice(0).map((each) => each.close()));
  } finally {
    await node.stop();
  }
});
