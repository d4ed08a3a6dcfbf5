export { type Fault, FaultyStore } from './faulty-store.js';
export { countLoads, expectLoads, type LoadCount } from './loads.js';
export { TestClock } from './test-clock.js';
export { createTestKit, type TestKit } from './test-kit.js';
