import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { formatEntry, parseEntry } from '../../lib/core/entry.js';
import type { EndRequest, LeadReply, LeadRequest, ReplaceRequest, Store } from '../../lib/core/store.js';
import { eventually } from '../support/eventually.js';
import { AWKWARD_KEYS, LOOK_ALIKES } from './awkward-keys.js';

/** Stores of several processes on one state, started, and ready to be woken. */
export interface StoreGroup {
  readonly stores: readonly Store[];
  /** Lets so many milliseconds go by in the time of the stores. */
  pass(milliseconds: number): Promise<void>;
}

/** Milliseconds of what is to run out: some commands pass within it, also on a busy machine. */
const SHORT = 1_000;

/** What every store does, whatever it keeps its state in. */
export function storeSuite(name: string, open: (count: number) => Promise<StoreGroup>): void {
  describe(name, () => {
    let first: Store;
    let second: Store;
    let third: Store;
    let pass: StoreGroup['pass'];
    /** The tokens each process was woken with. */
    const woken = new Map<Store, (string | undefined)[]>();
    let attempts = 0;
    let key = '';

    beforeAll(async () => {
      const group = await open(3);
      [first, second, third] = group.stores as [Store, Store, Store];
      pass = group.pass;
      for (const store of group.stores) {
        woken.set(store, []);
        store.onWake((token) => woken.get(store)?.push(token));
      }
    });
    afterAll(() => Promise.all([...woken.keys()].map((store) => store.close())));

    const newKey = () => {
      attempts += 1;
      key = `key ${attempts}`;
      return key;
    };
    const newToken = (store: Store) => {
      attempts += 1;
      return `${store.process}#${attempts}`;
    };
    const lead = (store: Store, request: Partial<LeadRequest> = {}) =>
      store.lead({ kind: 'cache', key, token: newToken(store), lease: 10_000, follow: true, ...request });
    const leading = async (store: Store, request: Partial<LeadRequest> = {}) => {
      const token = newToken(store);
      expect(await lead(store, { token, ...request })).toMatchObject({ is: 'leading' });
      return token;
    };
    const end = (store: Store, token: string, request: Partial<EndRequest> = {}) =>
      store.end({ kind: 'cache', key, token, ...request });
    const renew = (store: Store, token: string, lease: number) => store.renew({ kind: 'cache', key, token, lease });
    const replace = (store: Store, by: ReplaceRequest['by']) => store.replace({ key, by });
    const read = async (store: Store) => (await store.read([key])).texts[0];
    const fill = async (store: Store, text: string, px = 60_000, freshFor?: number) => {
      const token = await leading(store);
      expect(await end(store, token, { entry: { text, px, freshFor } })).toEqual({ is: 'held', stored: true });
    };
    const wakeUpsOf = (store: Store, token: string) => woken.get(store)?.filter((each) => each === token).length;
    const isWoken = (store: Store, token: string) => eventually(() => wakeUpsOf(store, token) === 1);
    /** Messages to one process come in order, so that what was sent before this one is there, or never was. */
    const settle = async (store: Store) => {
      const probed = key;
      newKey();
      const probe = await leading(third);
      await lead(store);
      await end(third, probe);
      await isWoken(store, probe);
      key = probed;
    };
    const text = formatEntry('"value"', 12);

    // Not at the end: after a long reply ioredis's parser has a timer for a second, which keeps jest's process from ending.
    describe('any text', () => {
      test.each([
        ['nothing', ''],
        ['100 kB', 'päylöad '.repeat(13_000)],
        ['all of ASCII', String.fromCharCode(...Array(128).keys())],
        ['what lies beyond', '\u0080\u00ff\u0800\uffff\ufffd👩‍👩‍👧‍👦\u2028\u202e'],
        ['what looks like our own', '1;;1;1;a,b#c;'],
      ])('comes back as it was: %s', async (_name, payload) => {
        newKey();
        const entry = formatEntry(payload, 3);
        await fill(first, entry);
        expect(await read(second)).toBe(entry);
        expect(await lead(second)).toEqual({ is: 'hit', text: entry });
        expect((await second.read([key, key])).texts).toEqual([entry, entry]);
      });
    });

    describe('read', () => {
      test('answers in the order of the keys', async () => {
        const [a, missing, b] = [newKey(), 'never stored', newKey()];
        await fill(first, formatEntry('b', 1));
        key = a;
        await fill(first, formatEntry('a', 1));
        expect((await second.read([a, missing, b, a])).texts).toEqual([
          formatEntry('a', 1),
          undefined,
          formatEntry('b', 1),
          formatEntry('a', 1),
        ]);
        expect((await second.read([missing])).texts).toEqual([undefined]);
        expect((await second.read([])).texts).toEqual([]);
      });

      test('finds nothing once the entry expired', async () => {
        newKey();
        await fill(first, text, SHORT);
        expect(await read(second)).toBe(text);
        await pass(SHORT + 50);
        expect(await read(second)).toBeUndefined();
      });
    });

    describe('lead', () => {
      test('lets one of many lead', async () => {
        newKey();
        const replies = await Promise.all([first, second, third, first, second, third].map((store) => lead(store)));
        expect(replies.filter((reply) => reply.is === 'leading')).toEqual([{ is: 'leading' }]);
        expect(replies.filter((reply) => reply.is === 'waiting')).toHaveLength(5);
      });

      test('finds the entry that was stored meanwhile', async () => {
        newKey();
        await fill(first, text);
        expect(await lead(second)).toEqual({ is: 'hit', text });
      });

      test('says whom to wait for, and how long at most', async () => {
        newKey();
        const token = await leading(first);
        const reply = await lead(second);
        expect(reply).toEqual({ is: 'waiting', token, leaseLeft: expect.any(Number), wakes: true, outcomeSeen: '' });
        expect(leaseLeft(reply)).toBeGreaterThan(8_000);
        expect(leaseLeft(reply)).toBeLessThanOrEqual(10_000);
      });

      test('takes a request sent again for the same one: the lease begins anew, the followers stay', async () => {
        newKey();
        const token = await leading(first, { lease: SHORT });
        await lead(second);
        expect(await lead(first, { token })).toEqual({ is: 'leading' });
        expect(leaseLeft(await lead(third))).toBeGreaterThan(8_000);
        await end(first, token);
        await isWoken(second, token);
      });

      test('is free again when the lease is over', async () => {
        newKey();
        const token = await leading(first, { lease: SHORT });
        await pass(SHORT + 50);
        const next = await leading(second);
        expect(await end(first, token, { entry: { text, px: 60_000 } })).toEqual({ is: 'refused' });
        expect(await read(first)).toBeUndefined();
        expect(await end(second, next)).toMatchObject({ is: 'held' });
      });

      test('takes an entry that the caller could not read for missing', async () => {
        newKey();
        const cut = text.slice(0, -3);
        await fill(first, cut);
        expect(await lead(second, { unreadable: 'another text' })).toEqual({ is: 'hit', text: cut });
        expect(await lead(second, { unreadable: cut })).toEqual({ is: 'leading' });
      });

      test.each(['Foo', '1', '1;', '1;12', '2;;1;1;a', '1;x;1;1;a'])('takes %j for missing', async (junk) => {
        newKey();
        await fill(first, junk);
        expect(await lead(second)).toEqual({ is: 'leading' });
      });
    });

    describe('followers', () => {
      test('are woken once, however often they asked', async () => {
        newKey();
        const token = await leading(first);
        await lead(second);
        await lead(second);
        await lead(third, { follow: false });
        await end(first, token);
        await isWoken(second, token);
        await settle(second);
        await settle(third);
        expect(wakeUpsOf(second, token)).toBe(1);
        expect(wakeUpsOf(third, token)).toBe(0);
        expect(wakeUpsOf(first, token)).toBe(0);
      });

      test('that do not want to be are not registered', async () => {
        newKey();
        await leading(first);
        expect(await lead(second, { follow: false })).toMatchObject({ is: 'waiting', wakes: false });
      });

      test('stay through a renewal, and live no longer than the lock', async () => {
        newKey();
        const token = await leading(first, { lease: SHORT });
        await lead(second);
        expect(await renew(first, token, 2 * SHORT)).toBe('held');
        await pass(SHORT + 50);
        expect(await lead(third)).toMatchObject({ is: 'waiting', token });
        await pass(SHORT);
        const next = await leading(first);
        await end(first, next);
        await settle(second);
        expect(wakeUpsOf(second, token)).toBe(0);
        expect(wakeUpsOf(second, next)).toBe(0);
      });
    });

    describe('end', () => {
      test('stores for good when asked to', async () => {
        newKey();
        await fill(first, text, Infinity);
        await pass(50);
        expect(await read(second)).toBe(text);
      });

      test('without an entry only releases', async () => {
        newKey();
        const token = await leading(first);
        expect(await end(first, token)).toEqual({ is: 'held', stored: false });
        expect(await end(first, token)).toEqual({ is: 'refused' });
        expect(await read(first)).toBeUndefined();
        const next = await leading(second);
        expect(await end(second, next.slice(0, -1))).toEqual({ is: 'refused' });
        expect(await end(second, `${next}1`)).toEqual({ is: 'refused' });
        expect(await end(second, next)).toEqual({ is: 'held', stored: false });
      });

      test('overwrites what is there', async () => {
        newKey();
        await fill(first, formatEntry('old', 1));
        await replace(first, 'expire');
        await fill(second, text);
        expect(await read(first)).toBe(text);
      });
    });

    describe('an outcome', () => {
      const outcome = 'e{"name":"Error"} ü,\n';

      test('is for those who waited for it', async () => {
        newKey();
        const token = await leading(first);
        await lead(second);
        await end(first, token, { outcome });
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'outcome', text: outcome });
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'outcome', text: outcome });
        expect(await lead(third, { follow: false })).toEqual({ is: 'leading' });
      });

      test('is not for those who began to wait when it was there, but the next one is', async () => {
        newKey();
        const token = await leading(first);
        await lead(second);
        await end(first, token, { outcome });
        const next = await leading(first);
        const waits = { is: 'waiting', token: next, outcomeSeen: token };
        expect(await lead(second)).toMatchObject(waits);
        expect(await lead(second, { outcomeSeen: token })).toMatchObject(waits);
        await end(first, next, { outcome: 'v2' });
        expect(await lead(second, { outcomeSeen: token })).toEqual({ is: 'outcome', text: 'v2' });
      });

      test('of a later load is for those who could not look in time, also while the one after that runs', async () => {
        newKey();
        const missed = await leading(first);
        expect(await lead(second)).toMatchObject({ is: 'waiting', outcomeSeen: '' });
        await end(first, missed, { outcome: 'v1' });
        const later = await leading(first);
        await lead(third);
        await end(first, later, { outcome: 'v2' });
        await leading(first);
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'outcome', text: 'v2' });
      });

      test('is gone after two seconds', async () => {
        newKey();
        const token = await leading(first);
        await lead(second);
        await end(first, token, { outcome });
        await pass(1_000);
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'outcome', text: outcome });
        await pass(1_100);
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'leading' });
      });

      test('is not kept when nobody waits', async () => {
        newKey();
        const token = await leading(first);
        await end(first, token, { outcome });
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'leading' });
      });

      test('is kept beside a value only when that may be gone before it is read', async () => {
        newKey();
        const short = await leading(first);
        await lead(second);
        await end(first, short, { outcome, entry: { text, px: 950 } });
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'hit', text });
        await pass(1_000);
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'outcome', text: outcome });

        newKey();
        const long = await leading(first);
        await lead(second);
        await end(first, long, { outcome, entry: { text, px: 1_000 } });
        await pass(1_050);
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'leading' });
      });

      test.each(['evict', 'expire', 'claim'] as const)('does not survive: %s', async (by) => {
        newKey();
        const token = await leading(first);
        await lead(second);
        await end(first, token, { outcome });
        await replace(third, by === 'claim' ? { claim: newToken(third), lease: 10_000 } : by);
        expect(await lead(second, { outcomeSeen: '' })).not.toMatchObject({ is: 'outcome' });
      });
    });

    describe('renew', () => {
      test('extends our lease and nobody else’s', async () => {
        newKey();
        const token = await leading(first, { lease: SHORT });
        expect(await renew(first, token, 10_000)).toBe('held');
        await pass(SHORT + 50);
        expect(await lead(second)).toMatchObject({ is: 'waiting', token });
        expect(await renew(second, newToken(second), 10_000)).toBe('other');
        await end(first, token);
        expect(await renew(first, token, 10_000)).toBe('gone');
        await leading(second);
        expect(await renew(first, token, 10_000)).toBe('other');
      });
    });

    describe('leaseLeft', () => {
      test('tells how long the lock would live, whoever holds it, and 0 when nobody does', async () => {
        newKey();
        expect(await second.leaseLeft(key)).toBe(0);
        const token = await leading(first, { lease: 10_000 });
        const left = await second.leaseLeft(key);
        expect(left).toBeGreaterThan(5_000);
        expect(left).toBeLessThanOrEqual(10_000);
        await renew(first, token, 60_000);
        expect(await first.leaseLeft(key)).toBeGreaterThan(20_000);
        await end(first, token);
        expect(await second.leaseLeft(key)).toBe(0);
      });

      test('speaks of loads, not of the lock service', async () => {
        newKey();
        await leading(first, { kind: 'lock' });
        expect(await second.leaseLeft(key)).toBe(0);
      });
    });

    describe('evict', () => {
      test('deletes the entry', async () => {
        newKey();
        await fill(first, text);
        await replace(second, 'evict');
        expect(await read(first)).toBeUndefined();
        await replace(second, 'evict');
      });

      test('ends the load under way: its value is refused, its holder and followers are woken', async () => {
        newKey();
        const token = await leading(first);
        await lead(second);
        await replace(third, 'evict');
        await isWoken(first, token);
        await isWoken(second, token);
        const next = await leading(second);
        expect(await end(first, token, { entry: { text, px: 60_000 } })).toEqual({ is: 'refused' });
        expect(await read(first)).toBeUndefined();
        expect(await end(second, next)).toMatchObject({ is: 'held' });
      });

      test('wakes a holder that follows itself once', async () => {
        newKey();
        const token = await leading(first);
        await lead(first);
        await replace(third, 'evict');
        await isWoken(first, token);
        await settle(first);
        expect(wakeUpsOf(first, token)).toBe(1);
      });
    });

    describe('expire', () => {
      test('leaves the value as a stale one, as long as it would have lived', async () => {
        newKey();
        await fill(first, text, SHORT);
        await replace(second, 'expire');
        const stale = await read(first);
        const { now } = await second.read([key], true);
        expect(parseEntry(String(stale))).toEqual({ payload: '"value"', loadTime: 12, freshUntil: expect.any(Number) });
        expect(parseEntry(String(stale))?.freshUntil).toBeLessThanOrEqual(now ?? 0);
        const token = newToken(first);
        expect(await lead(first, { token })).toEqual({ is: 'leading' });
        expect(await lead(second)).toMatchObject({ is: 'waiting', token });
        await pass(SHORT + 50);
        expect(await read(first)).toBeUndefined();
      });

      test('ends the load under way, and does nothing more to a missing entry', async () => {
        newKey();
        const token = await leading(first);
        await lead(second);
        await replace(third, 'expire');
        await isWoken(first, token);
        await isWoken(second, token);
        expect(await end(first, token, { entry: { text, px: 60_000 } })).toEqual({ is: 'refused' });
        expect(await read(first)).toBeUndefined();
      });
    });

    describe('claim', () => {
      test('takes the lock from whoever holds it and leaves the entry until it ends', async () => {
        newKey();
        await fill(first, formatEntry('old', 1));
        await replace(first, 'expire');
        const stale = await read(first);
        const loading = await leading(first);
        await lead(second);
        const claim = newToken(third);
        await replace(third, { claim, lease: 10_000 });
        await isWoken(first, loading);
        await isWoken(second, loading);
        expect(await read(first)).toBe(stale);
        expect(await lead(second)).toMatchObject({ is: 'waiting', token: claim });
        expect(await end(first, loading, { entry: { text: 'late', px: 60_000 } })).toEqual({ is: 'refused' });
        expect(await end(third, claim, { entry: { text, px: 60_000 } })).toEqual({ is: 'held', stored: true });
        await isWoken(second, claim);
        expect(await read(first)).toBe(text);
      });

      test('sent again is the same claim', async () => {
        newKey();
        const claim = newToken(first);
        await replace(first, { claim, lease: SHORT });
        await lead(second);
        await replace(first, { claim, lease: 10_000 });
        expect(leaseLeft(await lead(third))).toBeGreaterThan(8_000);
        expect(wakeUpsOf(first, claim)).toBe(0);
        await end(first, claim);
        await isWoken(second, claim);
      });

      test('ends with its lease', async () => {
        newKey();
        await replace(first, { claim: newToken(first), lease: SHORT });
        await pass(SHORT + 50);
        await leading(second);
      });
    });

    describe('an entry with a stale window', () => {
      test('is stamped by the store, fresh for so long, and stale afterwards', async () => {
        newKey();
        await fill(first, text, 10_000, SHORT);
        const stamped = String(await read(second));
        expect(parseEntry(stamped)).toEqual({ payload: '"value"', loadTime: 12, freshUntil: expect.any(Number) });
        expect(await lead(second)).toEqual({ is: 'hit', text: stamped });
        await pass(SHORT + 50);
        const token = newToken(second);
        expect(await lead(second, { token })).toEqual({ is: 'leading' });
        expect(await lead(first)).toMatchObject({ is: 'waiting', token });
      });
    });

    describe('the lock service', () => {
      const lock = { kind: 'lock' } as const;

      test('gives each lock of a key a larger fencing token, and a request sent again the same one', async () => {
        newKey();
        let last = 0;
        for (const store of [first, second, first]) {
          const token = newToken(store);
          const reply = await lead(store, { ...lock, token });
          expect(reply).toEqual({ is: 'leading', fencingToken: expect.any(Number) });
          expect(await lead(store, { ...lock, token })).toEqual(reply);
          const { fencingToken = 0 } = reply as { fencingToken?: number };
          expect(fencingToken).toBeGreaterThan(last);
          expect(Number.isSafeInteger(fencingToken)).toBe(true);
          last = fencingToken;
          await end(store, token, lock);
        }
      });

      test('has its own locks', async () => {
        newKey();
        const cache = await leading(first);
        const token = newToken(second);
        expect(await lead(second, { ...lock, token })).toMatchObject({ is: 'leading' });
        expect(await end(second, cache, lock)).toEqual({ is: 'refused' });
        await replace(third, 'evict');
        expect(await second.renew({ ...lock, key, token, lease: 10_000 })).toBe('held');
        expect(await lead(third, lock)).toMatchObject({ is: 'waiting', token, wakes: true });
        await end(second, token, lock);
        await isWoken(third, token);
      });

      test('frees a lock whose lease is over', async () => {
        newKey();
        const token = newToken(first);
        await lead(first, { ...lock, token, lease: SHORT });
        await pass(SHORT + 50);
        expect(await first.renew({ ...lock, key, token, lease: 10_000 })).toBe('gone');
        expect(await lead(second, lock)).toMatchObject({ is: 'leading' });
      });
    });

    describe('any key', () => {
      test.each(AWKWARD_KEYS)('%# has an entry, a lock and an outcome (K2)', async (awkward) => {
        key = awkward;
        const token = await leading(first);
        expect(await lead(second)).toMatchObject({ is: 'waiting', token });
        await end(first, token, { outcome: 'vx' });
        expect(await lead(second, { outcomeSeen: '' })).toEqual({ is: 'outcome', text: 'vx' });
        const again = await leading(second);
        await end(second, again, { entry: { text, px: 60_000 } });
        expect(await read(third)).toBe(text);
        await replace(third, 'evict');
        expect(await read(first)).toBeUndefined();
      });

      test('never meets another', async () => {
        for (const [i, each] of LOOK_ALIKES.entries()) {
          key = each;
          await fill(first, formatEntry(String(i), 1));
        }
        expect((await second.read(LOOK_ALIKES)).texts).toEqual(LOOK_ALIKES.map((_key, i) => formatEntry(String(i), 1)));
      });
    });

    test('a closed store sends nothing and is woken by nothing', async () => {
      const { stores } = await open(2);
      const [closed, other] = stores as [Store, Store];
      newKey();
      const token = await leading(other);
      await lead(closed);
      await closed.close();
      await closed.close();
      await expect(read(closed)).rejects.toThrow('closed');
      await expect(lead(closed)).rejects.toThrow('closed');
      await expect(end(closed, token)).rejects.toThrow('closed');
      await expect(renew(closed, token, 1_000)).rejects.toThrow('closed');
      await expect(replace(closed, 'evict')).rejects.toThrow('closed');
      await expect(closed.start()).rejects.toThrow('closed');
      expect(await end(other, token)).toMatchObject({ is: 'held' });
      await other.close();
    });
  });
}

function leaseLeft(reply: LeadReply): number {
  return reply.is === 'waiting' ? reply.leaseLeft : Number.NaN;
}
