import { createTestKit, type TestKit } from 'nestjs-stampede-cache/testing';

/** Not in a spec, so that whatever compiles the application compiles this, too. */
export function productsKit(): TestKit {
  return createTestKit({ defaults: { staleIfError: '5m' } });
}
