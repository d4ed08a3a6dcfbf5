/** Every TypeScript sample in the README and in docs/ compiles, as it stands there, against the library. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import ts from 'typescript';

const root = join(import.meta.dirname, '../..');
// Inside the project, so that its packages are found.
const folder = mkdtempSync(join(root, 'test/docs/.samples-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const pages = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)].filter((page) =>
  page.endsWith('.md'),
);
const samples = pages.flatMap((page) =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ''], i) => ({
    page,
    number: i + 1,
    code,
  })),
);

describe('samples of code', () => {
  test('there are some', () => {
    expect(samples.length).toBeGreaterThan(1);
  });

  test('compile', () => {
    const files = new Map<string, string>();
    for (const { page, number, code } of samples) {
      const file = join(folder, `${page.replace(/\W/g, '-')}-${number}.ts`);
      files.set(file, `${page}, sample ${number}`);
      writeFileSync(file, code);
    }
    expect(errorsIn(files)).toEqual([]);
  }, 180_000);

  test('one that does not fit the library is found', () => {
    const file = join(folder, 'wrong.ts');
    writeFileSync(
      file,
      "import { CacheAside } from 'nestjs-stampede-cache';\nexport const wrong = CacheAside(() => 1, '60s');\n",
    );
    expect(errorsIn(new Map([[file, 'wrong']]))).not.toEqual([]);
  }, 180_000);
});

function errorsIn(files: ReadonlyMap<string, string>): string[] {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root);
  const program = ts.createProgram([...files.keys()], { ...options, noEmit: true, incremental: false });
  return ts
    .getPreEmitDiagnostics(program)
    .filter(({ file }) => file && files.has(file.fileName))
    .map(
      ({ file, messageText }) =>
        `${files.get(file?.fileName ?? '')}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    );
}
