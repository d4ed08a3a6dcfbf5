/** Two instances of the sample app in this process, on one Redis and one database: what its README says holds. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from '../../sample-app/app.module.js';
import { Database } from '../../sample-app/database.js';
import type { Product } from '../../sample-app/products.service.js';
import type { Report } from '../../sample-app/reports.service.js';
import { startDatabase } from '../../scripts/sample/start-database.mjs';
import { type RedisServer, startRedis } from '../support/redis-server.js';

const environment = { ...process.env };
let redis: RedisServer;
let postgres: Awaited<ReturnType<typeof startDatabase>>;
let apps: INestApplication[] = [];
let urls: string[] = [];
let sql: Database;

beforeAll(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startDatabase()]);
  Object.assign(process.env, { REDIS_URL: redis.url, DATABASE_URL: postgres.url });
  apps = await Promise.all([1, 2].map(() => NestFactory.create(AppModule, { logger: false })));
  for (const app of apps) await app.listen(0, '127.0.0.1');
  urls = await Promise.all(apps.map((app) => app.getUrl()));
  sql = apps[0]!.get(Database);
});

afterAll(async () => {
  await Promise.all(apps.map((app) => app.close()));
  await Promise.all([redis?.stop(), postgres?.stop()]);
  process.env = environment;
});

it('lets one of a crowd over both instances query', async () => {
  const crowd = Array.from({ length: 100 }, (_, i) => fetch(`${urls[i % 2]}/products/1`));
  const products = await Promise.all(crowd.map(async (response) => (await response).json() as Promise<Product>));
  expect(new Set(products.map((product) => product.queryNumber)).size).toBe(1);
  expect(products[0]).toMatchObject({ id: 1, name: 'Product 1', orders: 300, unitsSold: 300 });
});

it('queries for each caller of the uncached route', async () => {
  const [one, other] = await Promise.all(urls.map((url) => get<Product>(`${url}/products/1/uncached`)));
  expect(one!.queryNumber).not.toBe(other!.queryNumber);
});

it('shows a changed price in the other instance at once', async () => {
  const before = await get<Product>(`${urls[0]}/products/2`);
  const changed = await fetch(`${urls[1]}/products/2`, {
    method: 'PATCH',
    body: new URLSearchParams({ priceInCents: '990' }),
  });
  const after = await get<Product>(`${urls[0]}/products/2`);
  expect(changed.status).toBe(204);
  expect([before.priceInCents, after.priceInCents]).toEqual([520, 990]);
  expect(await get<Product>(`${urls[1]}/products/2`)).toEqual(after);
});

it('answers 404 in both instances for a product that there is not', async () => {
  const responses = await Promise.all([...urls, ...urls].map((url) => fetch(`${url}/products/501`)));
  expect(responses.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
});

it('writes the nightly report once, whoever is asked, with the fencing token of its lock', async () => {
  const asked = [...urls, ...urls].map((url) => fetch(`${url}/reports/nightly`, { method: 'POST' }));
  const reports = await Promise.all(asked.map(async (response) => (await response).json() as Promise<Report>));
  expect(new Set(reports.map((report) => report.fencingToken)).size).toBe(1);
  expect(reports[0]!.fencingToken).toBeGreaterThan(0);
  expect(reports[0]!.bestSellers).toHaveLength(10);
});

it('caches the route of the report', async () => {
  const report = await get<Report>(`${urls[0]}/reports/nightly`);
  await sql.query('delete from catalog_sample.reports');
  expect(await get<Report>(`${urls[1]}/reports/nightly`)).toEqual(report);
});

it('deletes old reports under the decorated lock', async () => {
  await sql.query(`insert into catalog_sample.reports values (current_date - 40, 1, 'test', '[]'),
                                                            (current_date - 20, 2, 'test', '[]')`);
  const deletions = urls.map((url) => fetch(`${url}/reports?days=30`, { method: 'DELETE' }));
  const results = await Promise.all(deletions.map(async (response) => (await response).json() as Promise<unknown>));
  expect(results).toHaveLength(2);
  expect(results).toEqual(expect.arrayContaining([{ deleted: 1 }, { deleted: 0 }]));
});

async function get<T>(url: string): Promise<T> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} was answered ${response.status}`);
  return (await response.json()) as T;
}
