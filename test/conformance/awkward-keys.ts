/** Keys that have broken the names of others: hash tags, encodings, sizes. */
export const AWKWARD_KEYS: readonly string[] = [
  'x',
  '{}',
  '{a}b',
  'a{b',
  '}{',
  '{}x',
  '{{}}',
  '%7B%7D',
  '{"user":{"id":1},"tags":["a","b"]}',
  '🦀',
  'k'.repeat(10_240),
  'two\nlines\r\n',
  ' ',
  '\0',
  ':lock',
  'a\ud800',
  '\udc00b',
];

/** Different keys that a careless encoding takes for one. */
export const LOOK_ALIKES: readonly string[] = [
  ...['{', '%7B', '%257B', '}', '%7D', '%', '%25'],
  ...['\ud800', '\ud801', '\udfff', '\ufffd', '%uD800', '%EF%BF%BD'],
  ...['a', 'a:lock', 'a}:lock', 'a:outcome', '{a}', 'A', 'a ', ' a'],
];
