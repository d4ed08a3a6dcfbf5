import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: '../../node_modules/.cache/vitest',
  test: { include: ['*.vitest.ts'], pool: 'forks', poolOptions: { forks: { singleFork: true } } },
});
