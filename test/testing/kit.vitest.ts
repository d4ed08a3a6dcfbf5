/** Run by in-vitest.spec.ts, against the built package, as its users import it. */
import { afterEach, describe, expect, it } from 'vitest';
import { testKitSuite } from './suite.js';

testKitSuite({ describe, it, afterEach, expect });
