/** docs/events.md names every event there is, with its fields. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '../..');
const read = (page: string) => readFileSync(join(root, page), 'utf8');

/** Event to fields, in the order of their names. */
type Events = Record<string, string[]>;

function eventsOfCode(): Events {
  const [, union = ''] = /^export type CacheEvent =$(.*?);\n\n/ms.exec(read('lib/core/events.ts')) ?? [];
  const events = [...union.matchAll(/\{ readonly type: '([\w-]+)'(.*?) \}/g)].map(([, type = '', rest = '']) => {
    const fields = [...rest.matchAll(/readonly (\w+)\??:/g)].map(([, field = '']) => field);
    return [type, fields.sort()];
  });
  return Object.fromEntries(events);
}

function eventsOfPage(): Events {
  const rows = [...read('docs/events.md').matchAll(/^\| `([\w-]+)` \| ([^|]*) \|/gm)];
  return Object.fromEntries(
    rows.map(([, type = '', cell = '']) => [
      type,
      [...cell.matchAll(/`(\w+)`/g)].map(([, field = '']) => field).sort(),
    ]),
  );
}

test('docs/events.md has the events of the code, and their fields', () => {
  const events = eventsOfCode();
  expect(Object.keys(events).length).toBeGreaterThan(20);
  expect(eventsOfPage()).toEqual(events);
});
