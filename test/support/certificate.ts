/**
 * A self-signed certificate for 127.0.0.1, and a redis-server that serves TLS with it beside its plain port:
 * `const { redis, tlsPort, ca } = await startTlsRedis({ users })`, `await redis.stop()`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../scripts/free-port.mjs';
import { type RedisServer, type RedisServerOptions, startRedis } from './redis-server.js';

export interface Certificate {
  /** The certificate in PEM, which is its own authority. */
  readonly ca: string;
  readonly file: string;
  readonly key: string;
  remove(): void;
}

export function makeCertificate(): Certificate {
  const directory = mkdtempSync(join(tmpdir(), 'redis-tls-'));
  const file = join(directory, 'redis.crt');
  const key = join(directory, 'redis.key');
  const about = ['-subj', '/CN=redis-test', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  execFileSync('openssl', ['req', '-x509', ...kind, ...about, '-keyout', key, '-out', file], { stdio: 'pipe' });
  return { ca: readFileSync(file, 'utf8'), file, key, remove: () => rmSync(directory, { recursive: true }) };
}

export async function startTlsRedis(
  { file, key }: Certificate,
  { args = [], ...options }: RedisServerOptions = {},
): Promise<{ redis: RedisServer; tlsPort: number }> {
  const tlsPort = await freePort();
  const tls = [
    '--tls-port',
    String(tlsPort),
    '--tls-cert-file',
    file,
    '--tls-key-file',
    key,
    '--tls-ca-cert-file',
    file,
  ];
  const redis = await startRedis({ ...options, args: [...tls, '--tls-auth-clients', 'no', ...args] });
  return { redis, tlsPort };
}
