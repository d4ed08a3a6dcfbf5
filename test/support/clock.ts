export { settle, TestClock } from '../../lib/testing/test-clock.js';
