/** Nest applications that a test starts; each is closed after it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach } from '@jest/globals';
import { type INestApplication, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import type { StampedeLogger } from '../../lib/core/logger.js';

const apps: INestApplication[] = [];

afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** For those that are made elsewhere. */
export function closeAfterTest<App extends INestApplication>(app: App): App {
  apps.push(app);
  return app;
}

/**
 * An application, initialised.
 *
 * @param override may put other providers in the place of some
 * @param configure is called before it is initialised
 */
export async function startApp(
  metadata: ModuleMetadata,
  override: (builder: TestingModuleBuilder) => TestingModuleBuilder = (builder) => builder,
  configure: (app: INestApplication) => unknown = () => {},
): Promise<INestApplication> {
  const testing = await override(Test.createTestingModule(metadata)).compile();
  const app = testing.createNestApplication();
  // Before it is initialised, so that one that fails to is closed as well.
  apps.push(app);
  configure(app);
  await app.init();
  return app;
}

/** The same, listening; `url` is where. */
export async function listen(
  metadata: ModuleMetadata,
  configure?: (app: INestApplication) => unknown,
): Promise<{ app: INestApplication; url: string }> {
  const app = await startApp(metadata, undefined, configure);
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl() };
}

/** Why an application does not start. */
export async function bootError(metadata: ModuleMetadata): Promise<Error> {
  try {
    await startApp(metadata);
  } catch (error) {
    return error as Error;
  }
  throw new Error('the application has started');
}

export interface KeptLogger extends StampedeLogger {
  readonly lines: string[];
}

/** A logger that keeps its lines, `level: message`. */
export function keptLogger(): KeptLogger {
  const lines: string[] = [];
  const keep = (level: string) => (message: string) => void lines.push(`${level}: ${message}`);
  return { lines, log: keep('log'), warn: keep('warn'), error: keep('error') };
}

/** A task that takes a moment, as a query does. */
export async function moment<T>(result: T): Promise<T> {
  await sleep(20);
  return result;
}
