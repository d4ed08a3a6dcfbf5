import { afterEach, describe, expect, it } from '@jest/globals';
import { type Runner, testKitSuite } from './suite.js';

testKitSuite({ describe, it, afterEach, expect } as Runner);
