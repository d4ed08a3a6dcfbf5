/** Applications on both of Nest's HTTP platforms, and a client that sends what it is told to, as it stands. */
import { request as send } from 'node:http';
import { type INestApplication, type ModuleMetadata } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { closeAfterTest } from '../apps.js';

export const PLATFORMS = ['Express', 'Fastify'] as const;
export type Platform = (typeof PLATFORMS)[number];

export async function listenOn(
  platform: Platform,
  metadata: ModuleMetadata,
  configure: (app: INestApplication) => unknown = () => {},
  fastify: { readonly http2?: true } = {},
): Promise<{ app: INestApplication; url: string; port: number }> {
  const testing = await Test.createTestingModule(metadata).compile();
  const app = closeAfterTest(
    platform === 'Express'
      ? testing.createNestApplication()
      : testing.createNestApplication(new FastifyAdapter(fastify as object)),
  );
  await configure(app);
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  return { app, url, port: Number(new URL(url).port) };
}

export interface RawRequest {
  readonly method?: string;
  /** Headers as they are sent, also several of one name: `[name, value, name, value]`. */
  readonly headers?: Record<string, string | string[]> | readonly string[];
  readonly body?: string;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
  /** The body, read as JSON. */
  readonly json: Readonly<Record<string, unknown>>;
}

/** Sends a request whose path and headers no client library has touched. */
export function raw(
  port: number,
  path: string,
  { method = 'GET', headers = {}, body }: RawRequest = {},
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const request = send(
      { host: '127.0.0.1', port, path, method, headers: headers as never, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: text,
            get json() {
              return JSON.parse(text);
            },
          });
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

export const crowd = <T>(size: number, one: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: size }, (_, index) => one(index)));
