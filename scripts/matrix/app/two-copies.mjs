// A library of the application has a copy of the package to itself. Its decorated methods use the application's cache; a
// class of its copy is another class, and Nest names it at boot.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';

const library = 'node_modules/prices';
mkdirSync(`${library}/node_modules`, { recursive: true });
cpSync('node_modules/nestjs-stampede-cache', `${library}/node_modules/nestjs-stampede-cache`, { recursive: true });
writeFileSync(`${library}/package.json`, '{ "name": "prices", "type": "module", "exports": "./index.js" }');
writeFileSync(`${library}/index.js`, "export * from 'nestjs-stampede-cache';");
const copy = await import('prices');
assert.notEqual(copy.StampedeCache, StampedeCache);

class Prices {
  loads = 0;

  async of(id) {
    this.loads += 1;
    return id.length;
  }
}
decorate(
  Prices,
  'of',
  copy.CacheAside((id) => ['price', id], '60s'),
);
Injectable()(Prices);

const app = await boot(Prices);
const prices = app.get(Prices);
assert.equal(await prices.of('a'), 1);
assert.equal(await app.get(StampedeCache).get('price:a'), 1);
await app.get(StampedeCache).evict('price:a');
await prices.of('a');
assert.equal(prices.loads, 2);
await app.close();

class NeedsOther {}
Injectable()(NeedsOther);
Reflect.defineMetadata('design:paramtypes', [copy.StampedeCache], NeedsOther);
await assert.rejects(boot(NeedsOther), /can't resolve dependencies of the NeedsOther .*StampedeCache at index \[0\]/);

function decorate({ prototype }, name, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  Object.defineProperty(prototype, name, decorator(prototype, name, descriptor) ?? descriptor);
}

async function boot(provider) {
  class AppModule {}
  Module({ imports: [StampedeCacheModule.forTest()], providers: [provider] })(AppModule);
  return NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
}
