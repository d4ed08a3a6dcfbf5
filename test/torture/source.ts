/**
 * The source of truth, outside Redis: what loaders load from and what writers change, with a version for each key; and the
 * book in which all processes write what they do, line by line. On a socket of the system, so that what a process has written
 * is there even if it is killed right after.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A line of the book: `t` says what it is, and of the source's questions `ask` numbers them. */
export interface Line {
  readonly t: string;
  readonly ask?: number;
  readonly [field: string]: unknown;
}

export class Source {
  readonly path: string;
  readonly lines: Line[] = [];
  readonly #directory = mkdtempSync(join(tmpdir(), 'torture-'));
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #versions = new Map<string, number>();

  private constructor() {
    this.path = join(this.#directory, 'source');
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async open(): Promise<Source> {
    const source = new Source();
    await new Promise<void>((resolve) => source.#server.listen(source.path, resolve));
    return source;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    const lines = createInterface({ input: socket });
    // Those of a process that was killed.
    lines.on('error', () => {});
    lines.on('line', (text) => {
      const line = JSON.parse(text) as Line;
      const version = this.#version(line);
      this.lines.push({ ...line, version });
      if (line.ask !== undefined && socket.writable) socket.write(`${JSON.stringify({ ask: line.ask, version })}\n`);
    });
  }

  /** Whoever is going to evict, expire or set a key has changed what it stands for. */
  #version({ t, key }: Line): number | undefined {
    if (typeof key !== 'string') return undefined;
    const version = (this.#versions.get(key) ?? 0) + (t === 'write' ? 1 : 0);
    this.#versions.set(key, version);
    return version;
  }
}
