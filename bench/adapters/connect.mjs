import { Redis } from 'ioredis';

/** An ioredis client that is connected. */
export async function connect(port, options = {}, Client = Redis) {
  const client = new Client({ host: '127.0.0.1', port, ...options });
  await client.ping();
  return client;
}
