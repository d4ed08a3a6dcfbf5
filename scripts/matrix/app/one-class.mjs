// Every public name is the same however it is imported, and one cache is injected.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const imported = await import('nestjs-stampede-cache');
const required = createRequire(import.meta.url)('nestjs-stampede-cache');
for (const name of Object.keys(imported)) assert.equal(required[name], imported[name], name);

class AppModule {}
Module({ imports: [required.StampedeCacheModule.forTest()] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
assert(app.get(imported.StampedeCache) instanceof required.StampedeCache);
assert.equal(app.get(imported.StampedeCache), app.get(required.StampedeCache));
assert.equal(imported.stampedeCacheToken('other'), required.stampedeCacheToken('other'));
await app.close();
