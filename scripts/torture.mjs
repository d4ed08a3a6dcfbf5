// What `npm run torture` runs: hours of bad luck in minutes. test/torture/README.md says what it does.
//   --seed N  --seeds K  --seconds S  --topology standalone|sentinel  --history FILE
import { build } from './build.mjs';
import { bundleTorture } from './bundle-torture.mjs';
import { findRedis, missingRedis } from './find-redis.mjs';
import { ensureDependencies } from './setup.mjs';

ensureDependencies();
const redis = findRedis({ allowInstall: true });
if (!redis) throw new Error(missingRedis());
process.env.REDIS_SERVER = redis.binary;
build('nestjs-stampede-cache', { sources: ['lib'], output: 'dist/lib' });
const { main, worker } = await bundleTorture();
process.exit(await main(process.argv.slice(2), { worker }));
