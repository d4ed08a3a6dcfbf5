import type { Coordination } from './coordination.js';
import { Lease } from './lease.js';
import type { LeadReply, LeadRequest } from './store.js';
import type { TokenWatch } from './wake-ups.js';

/** What came of asking to lead. */
export interface Led {
  readonly reply: LeadReply;
  /** The lease, if the reply is that this process leads. */
  readonly lease: Lease;
  /** Watches for the end of the lock that the reply speaks of, ours or another's. To be stopped. */
  readonly watch: TokenWatch;
}

/**
 * One attempt to lead, with a token of its own: what the cache and the lock service have in common.
 *
 * @param request its token is new: `coordination.newToken()`
 * @throws what the store rejects with; then nothing stays locked
 */
export function lead(coordination: Coordination, request: LeadRequest): Promise<Led> {
  const { clock, store, wakeUps } = coordination;
  const recording = wakeUps.record();
  const sentAt = clock.now();
  return store.lead(request).then(
    (reply) => ({
      reply,
      lease: new Lease(store, clock, request, sentAt),
      watch: recording.watch(reply.is === 'waiting' ? reply.token : request.token),
    }),
    (error) => {
      recording.stop();
      throw error;
    },
  );
}
