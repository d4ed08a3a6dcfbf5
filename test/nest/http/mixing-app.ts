/** Applications whose routes must not mix the answers of two requests. */
import { type INestApplication } from '@nestjs/common';
import { StampedeCacheModule } from 'nestjs-stampede-cache';
import { keptLogger } from '../apps.js';
import { listenOn, type Platform, type RawRequest, raw } from './http-app.js';

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, unknown>;
  readonly query: unknown;
  readonly body?: unknown;
  readonly user?: unknown;
  readonly session?: { visits?: number };
}

export interface SomeResponse {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
}

export async function start(
  platform: Platform,
  controllers: (new (...args: never[]) => object)[],
  configure?: (app: INestApplication) => unknown,
) {
  const logger = keptLogger();
  const { app, port } = await listenOn(
    platform,
    { imports: [StampedeCacheModule.forTest({ logger })], controllers },
    configure,
  );
  const get = (path: string, request?: RawRequest) => raw(port, path, request);
  const warnings = () => logger.lines.filter((line) => line.startsWith('warn'));
  return { app, port, get, warnings };
}
