// The script of `processes.spec.ts`.
import { serve } from './worker.mjs';

if (process.env.SAMPLE_EXIT) process.exit(Number(process.env.SAMPLE_EXIT));

serve({
  async echo(...values) {
    return values;
  },
  async fail() {
    throw Object.assign(new RangeError('too far', { cause: new Error('the cause') }), { code: 'E_FAR', status: 404 });
  },
  async leakRejection() {
    void Promise.reject(new Error('nobody handles this'));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  },
  async leakRejectionLater() {
    setTimeout(() => Promise.reject(new Error('nobody handles this')), 1);
  },
  never() {
    return new Promise(() => {});
  },
  unclonable() {
    return () => {};
  },
});
