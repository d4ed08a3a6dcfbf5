const SENTENCE = 'Whoever asks for a popular key at a bad moment should wait for one load and not start another. ';

/** An object whose JSON has about so many bytes: a mixture, as applications have it. It knows its key. */
export function makeValue(key, bytes = 1000) {
  const value = { key, active: true, score: 98.75, tags: ['new', 'sale'], text: '', items: [] };
  if (bytes < 200) return { ...value, text: SENTENCE.slice(0, Math.max(0, bytes - 80)) };
  const half = (bytes - 100) / 2;
  for (let id = 0; id < half / 48; id++)
    value.items.push({ id, sku: `SKU-${1000 + id}`, count: id * 2, price: id + 0.99 });
  value.text = SENTENCE.repeat(Math.ceil(half / SENTENCE.length)).slice(0, half);
  return value;
}
