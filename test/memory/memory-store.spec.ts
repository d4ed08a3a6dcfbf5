import { MemoryServer } from '../../lib/memory/memory-server.js';
import { MemoryStore } from '../../lib/memory/memory-store.js';
import { storeSuite } from '../conformance/store-suite.js';
import { TestClock } from '../support/clock.js';

storeSuite('MemoryStore', async (count) => {
  const clock = new TestClock();
  const server = new MemoryServer({ clock });
  const stores = Array.from({ length: count }, () => new MemoryStore({ server }));
  await Promise.all(stores.map((store) => store.start()));
  return { stores, pass: (milliseconds) => clock.advance(milliseconds) };
});
