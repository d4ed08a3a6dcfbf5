import { from, lastValueFrom, type Observable, toArray } from 'rxjs';
import { composeKey } from '../../core/keys.js';
import { evictionKeyOf, generationOf } from './evict-by.js';
import { loadResponse, whyNotStored } from './load-response.js';
import type { RouteCall } from './route-call.js';
import type { RouteResponse } from './shared-response.js';

/**
 * Answers a GraphQL query, or a microservice's message, from the cache if `key` says by what; otherwise, and for all that
 * changes something or waits for no answer (mutations, subscriptions, events, WebSockets), the handler answers.
 */
export async function answerMessage(call: RouteCall): Promise<Observable<unknown>> {
  const { context, next, route, facts, warn } = call;
  const type = context.getType<string>();
  const isAnswered = type === 'graphql' ? isQuery(context.getArgByIndex(3)) : type === 'rpc';
  if (!route.key || !isAnswered || facts.takesMessagesUnanswered) return next.handle();
  const own = route.key(context);
  const eviction = evictionKeyOf(call);
  if (own === undefined || !eviction) return next.handle();
  const generation = await generationOf(call, eviction.key);
  const where = `The key that the 'key' function of ${facts.name}'s @CacheResponse returned`;
  const parts = [type, facts.handler, answeredName(call, type), composeKey(own, where)];
  const key = composeKey(generation === undefined ? parts : [...parts, generation]);

  let values: unknown[] | undefined;
  const response = await loadResponse(call, key, async (): Promise<RouteResponse> => {
    // A handler of messages may answer with several.
    const made = await lastValueFrom(next.handle().pipe(toArray()));
    values = made;
    const why = whyNotStored(call, made);
    if (why === undefined) return route.keepingIn(call.access.cache).withTtl({ status: 200, body: made }, made.at(-1));
    warn(`answers with ${why}, and only plain data is stored. Return plain data, or choose a codec that knows it.`);
    return { isPrivate: true };
  });
  if (values) return from(values);
  return 'isPrivate' in response ? next.handle() : from(response.body as unknown[]);
}

/** By what the handler is asked for: classes that a function makes may share a name. */
function answeredName({ context, facts }: RouteCall, type: string): string {
  if (type === 'rpc') return facts.pattern;
  const info: ResolveInfo | undefined = context.getArgByIndex(3);
  return composeKey([String(info?.parentType), info?.fieldName]);
}

/** Of GraphQL's fourth argument, what is used here. */
interface ResolveInfo {
  readonly operation?: { readonly operation?: string };
  readonly parentType?: object;
  readonly fieldName?: string;
}

/** What kind of operation a resolver is a part of. */
function isQuery(info: ResolveInfo | undefined): boolean {
  return info?.operation?.operation === 'query';
}
