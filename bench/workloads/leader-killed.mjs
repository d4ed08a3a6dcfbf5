import { setTimeout as sleep } from 'node:timers/promises';
import { meter } from '../harness/meter.mjs';
import { withProcesses } from '../harness/processes.mjs';
import { now } from '../harness/time.mjs';
import { warmUp } from './crowd.mjs';

export const leaderKilled = {
  name: 'leader-killed',
  title: 'The leader is killed',
  about:
    'The process that loads is killed (SIGKILL) 100 ms into its load, while another waits. The lease is 1 s: the next load ' +
    'can start when it has ended. Without a lock across processes the other loads at once.',
  full: { lease: 1_000, loadTime: 50, warmUps: 500 },
  quick: { lease: 1_000, loadTime: 50, warmUps: 100 },
  multiProcess: true,
  async measure({ redis, system, round, numbers }) {
    await redis.empty();
    const { lease, loadTime, warmUps } = numbers;
    return withProcesses(2, redis, system, { lease, wait: 10_000 }, async ([leader, other]) => {
      await warmUp([leader, other], warmUps);
      const key = `leader ${round}`;
      const loading = leader.told('loading');
      await leader.call('hold', { key });
      const ledAt = await loading;
      await sleep(50);
      const metered = await meter(redis, [other], async () => {
        const waiting = other.call('ask', { key, loadTime });
        await sleep(50);
        const killedAt = now();
        await leader.kill();
        return { ...(await waiting), killedAt };
      });
      const { loadedAt, answeredAt, killedAt, error } = metered.result;
      const waited = loadedAt === null || loadedAt >= killedAt;
      return {
        behaviour: waited ? 'waits for the lease' : 'loads at once',
        afterLease: waited && loadedAt !== null ? loadedAt - (ledAt + lease) : null,
        afterKill: answeredAt - killedAt,
        commands: metered.commands,
        redisCpu: metered.redisCpu / 1000,
        cpu: metered.cpu / 1000,
        faults: [...(waited ? [] : ['2 loads at once']), ...(error ? [error] : [])],
      };
    });
  },
  columns: [
    ['behaviour', 'the other process'],
    ['afterLease', "next load after the lease's end, ms", 0],
    ['afterLease', 'worst', 0, 'worst'],
    ['afterKill', 'answered after the kill, ms', 0],
    ['commands', 'commands meanwhile', 0],
    ['redisCpu', 'Redis CPU ms', 1],
    ['cpu', 'CPU ms', 1],
  ],
  chart: { field: 'afterLease', title: "next load after the lease's end, ms", less: true },
};
