import { composeKey, type Duration, type Key } from 'nestjs-stampede-cache';
import { describe, expect, test } from 'tstyche';

describe('Duration', () => {
  test('is milliseconds, or a text with a unit', () => {
    expect<Duration>().type.toBeAssignableFrom<60_000 | '1500ms' | '60s' | '5m' | '1.5h' | '7d'>();
    expect<Duration>().type.not.toBeAssignableFrom<'60 secons'>();
    expect<Duration>().type.not.toBeAssignableFrom<'60sec'>();
    expect<Duration>().type.not.toBeAssignableFrom<'1500'>();
    expect<Duration>().type.not.toBeAssignableFrom<'s'>();
    expect<Duration>().type.not.toBeAssignableFrom<'1w'>();
    expect<Duration>().type.not.toBeAssignableFrom<string>();
    expect<Duration>().type.not.toBeAssignableFrom<null>();
  });
});

describe('Key', () => {
  test('is a string, or parts', () => {
    expect<Key>().type.toBeAssignableFrom<string>();
    expect<Key>().type.toBeAssignableFrom<(string | number | bigint | boolean | null | undefined)[]>();
    expect<Key>().type.toBeAssignableFrom<readonly ['product', number]>();
    expect<Key>().type.not.toBeAssignableFrom<number>();
    expect<Key>().type.not.toBeAssignableFrom<{ id: string }>();
    expect<Key>().type.not.toBeAssignableFrom<[Date]>();
    expect<Key>().type.not.toBeAssignableFrom<[string[]]>();
    expect<Key>().type.not.toBeAssignableFrom<Promise<string>>();
    expect<Key>().type.not.toBeAssignableFrom<undefined>();
    expect(composeKey(['product', 7])).type.toBe<string>();
  });
});
