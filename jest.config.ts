/** @jest-config-loader esbuild-register */
import type { Config } from 'jest';

const config: Config = {
  rootDir: '.',
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.spec.ts'],
  // For tests that start Redis servers; those on the test clock take milliseconds.
  testTimeout: 30_000,
  // Every worker may run a Cluster of six servers beside it.
  maxWorkers: 2,
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^nestjs-stampede-cache$': '<rootDir>/lib/index.ts',
    '^nestjs-stampede-cache/testing$': '<rootDir>/lib/testing/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        swcrc: false,
        sourceMaps: 'inline',
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: {
            legacyDecorator: true,
            decoratorMetadata: true,
            useDefineForClassFields: true,
          },
          keepClassNames: true,
        },
        module: { type: 'es6' },
      },
    ],
  },
  collectCoverageFrom: ['lib/**/*.ts'],
  coverageProvider: 'v8',
  coverageDirectory: 'coverage',
};

export default config;
