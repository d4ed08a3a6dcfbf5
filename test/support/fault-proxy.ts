/**
 * A TCP proxy that misbehaves on demand, put between a client and a real server:
 * `const proxy = await startProxy(redis.port)`, connect to `proxy.port`, `await proxy.stop()`.
 *
 * - `delay({ min, max, random })`: every chunk waits that many milliseconds, both ways, the order of each way kept.
 *   `delay({ min: 0, max: 0 })` ends it.
 * - `hold(direction?)` / `release(direction?)`: what is sent stays under way until released; connections stay open, new
 *   ones are accepted and hear nothing. Both directions unless one is named.
 * - `cut()`: all connections are destroyed; new ones pass. `refuse()` / `accept()`: new ones are refused, or pass again;
 *   those already there stay. A server that can't be reached: `refuse()` and `cut()`.
 * - `onRequest(hook)`: the hook sees what a client sent (as text: the commands' names and keys can be found in it; one
 *   chunk may hold a whole pipeline) and returns what happens; `onRequest(undefined)` ends it.
 *     - `'pass'`
 *     - `{ delay: ms }`: reaches the server later, and so does everything after it on that connection.
 *     - `{ instead: text }`: this is what reaches the server.
 *     - `'cut'`: never reaches the server; the connection is destroyed.
 *     - `'cutReply'`: reaches the server; the connection is destroyed when the reply arrives, which the client never sees.
 *     - `'dropReply'`: reaches the server; no reply to it, *nor anything that follows on that connection*, reaches the
 *       client, until the connection is destroyed (replies carry no numbers, so a gap would shift all later ones).
 * - `connections`: how many are open.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../scripts/free-port.mjs';
import { DelayedPipe, END } from './delayed-pipe.js';

export type Direction = 'toServer' | 'toClient';
export type Verdict = 'pass' | 'cut' | 'cutReply' | 'dropReply' | { delay: number } | { instead: string };
export type RequestHook = (request: string) => Verdict;

export interface Delay {
  min: number;
  max: number;
  /** 0 ≤ number < 1, `Math.random` by default; give a seeded one for a run that can be repeated. */
  random?: () => number;
}

/** Starts a proxy on a free loopback port in front of `targetPort`. */
export async function startProxy(targetPort: number): Promise<FaultProxy> {
  const proxy = new FaultProxy(await freePort(), targetPort);
  await proxy.accept();
  return proxy;
}

export class FaultProxy {
  private server?: Server;
  private hook?: RequestHook;
  private nextDelay = (): number => 0;
  private readonly held = new Set<Direction>();
  private readonly open = new Set<Connection>();

  constructor(
    readonly port: number,
    private readonly targetPort: number,
  ) {}

  get connections(): number {
    return this.open.size;
  }

  delay({ min, max, random = Math.random }: Delay): void {
    this.nextDelay = () => min + random() * (max - min);
  }

  hold(direction?: Direction): void {
    for (const each of both(direction)) this.held.add(each);
  }

  release(direction?: Direction): void {
    for (const each of both(direction)) this.held.delete(each);
    for (const connection of this.open) connection.resume();
  }

  onRequest(hook: RequestHook | undefined): void {
    this.hook = hook;
  }

  cut(): void {
    for (const connection of this.open) connection.destroy();
  }

  refuse(): void {
    // Only the listening socket closes.
    this.server?.close();
    this.server = undefined;
  }

  async accept(): Promise<void> {
    if (this.server) return;
    this.server = createServer({ noDelay: true }, (client) => this.connect(client));
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  async stop(): Promise<void> {
    const closed = this.server && once(this.server, 'close');
    this.refuse();
    this.cut();
    await closed;
  }

  private connect(client: Socket): void {
    const upstream = connect({ port: this.targetPort, host: '127.0.0.1', noDelay: true });
    const connection: Connection = new Connection(client, upstream, {
      verdict: (request) => this.hook?.(request) ?? 'pass',
      delay: () => this.nextDelay(),
      isHeld: (direction) => this.held.has(direction),
      closed: () => this.open.delete(connection),
    });
    this.open.add(connection);
  }
}

interface Faults {
  verdict: RequestHook;
  delay(): number;
  isHeld(direction: Direction): boolean;
  closed(): void;
}

/** One client's connection and the one to the server that belongs to it. */
class Connection {
  private replies: 'pass' | 'drop' | 'cut' = 'pass';
  private readonly toServer: DelayedPipe;
  private readonly toClient: DelayedPipe;

  constructor(
    private readonly client: Socket,
    private readonly upstream: Socket,
    private readonly faults: Faults,
  ) {
    this.toServer = new DelayedPipe(upstream, () => faults.isHeld('toServer'));
    this.toClient = new DelayedPipe(client, () => faults.isHeld('toClient'));
    client.on('data', (chunk) => this.onRequest(chunk));
    upstream.on('data', (chunk) => this.onReply(chunk));
    client.on('end', () => this.toServer.push(END, faults.delay()));
    upstream.on('end', () => this.toClient.push(END, faults.delay()));
    for (const socket of [client, upstream]) {
      socket.on('error', () => this.destroy());
      socket.on('close', () => {
        if (client.closed && upstream.closed) faults.closed();
      });
    }
  }

  resume(): void {
    this.toServer.flush();
    this.toClient.flush();
  }

  destroy(): void {
    this.toServer.clear();
    this.toClient.clear();
    this.client.destroy();
    this.upstream.destroy();
  }

  private onRequest(chunk: Buffer): void {
    const verdict = this.faults.verdict(chunk.toString());
    if (verdict === 'cut') {
      this.destroy();
      return;
    }
    if (verdict === 'dropReply') this.replies = 'drop';
    if (verdict === 'cutReply') this.replies = 'cut';
    const extra = typeof verdict === 'object' && 'delay' in verdict ? verdict.delay : 0;
    const sent = typeof verdict === 'object' && 'instead' in verdict ? Buffer.from(verdict.instead) : chunk;
    this.toServer.push(sent, this.faults.delay() + extra);
  }

  private onReply(chunk: Buffer): void {
    if (this.replies === 'pass') this.toClient.push(chunk, this.faults.delay());
    if (this.replies === 'cut') this.destroy();
  }
}

function both(direction: Direction | undefined): Direction[] {
  return direction ? [direction] : ['toServer', 'toClient'];
}
