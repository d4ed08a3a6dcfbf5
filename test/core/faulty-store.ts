export { type Fault, FaultyStore } from '../../lib/testing/faulty-store.js';
