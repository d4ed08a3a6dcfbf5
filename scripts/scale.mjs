// What `npm run scale` runs: test/scale with 200 simulated processes (or SCALE of them), which prints what docs/scaling.md says.
process.env.SCALE ??= '200';
process.argv.push('test/scale');
await import('./test.mjs');
