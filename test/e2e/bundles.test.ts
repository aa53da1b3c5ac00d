/** What ships: one bundle for each program, few files, whose stack traces name the sources. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.resolve('#bundle/main.js')));
const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8');
const bundles = readdirSync(folder).filter((name) => /\.c?js$/.test(name));

/** What stands behind `from`, or behind `import` alone; in minified text, where a string hardly looks like an import of a file or package. */
const importedBy = (name: string): string[] =>
  [...textOf(name).matchAll(/\bimport\s*(?:[\w$*{][^"'`();]*?\bfrom\s*)?["']([\w@./:-]+)["']/g)].map(
    ([, from]) => from as string,
  );

/** The bundle with all chunks that it loads, itself first. */
function loadedBy(name: string, known = new Set<string>()): Set<string> {
  if (known.has(name)) return known;
  known.add(name);
  for (const from of importedBy(name).filter((from) => from.startsWith('./'))) loadedBy(from.slice(2), known);
  return known;
}

test('a program loads a few files instead of hundreds', () => {
  // Itself and the reader of source maps, but for the chunks that the service's parts and the commands share.
  const most = { 'track.js': 2, 'forecast.js': 2, 'engine-thread.js': 2, 'clickhouse.js': 2, 'main.js': 12 };
  for (const [name, bound] of Object.entries({ ...most, 'api-process.js': 10, 'cli-import.js': 60 })) {
    const files = loadedBy(name).size;
    assert.ok(files > 1 && files <= bound, `${name}: ${files} files`);
  }
});

test('nothing is imported from packages but what is native or starts files of its own', () => {
  const imported = bundles.flatMap(importedBy);
  const packages = new Set(imported.filter((from) => !isBuiltin(from) && !from.startsWith('./')));
  assert.deepEqual([...packages].sort(), ['chdb', 'piscina', 'uWebSockets.js']);
});

test('a stack trace tells files and lines of the sources', () => {
  const script = `import(${JSON.stringify(import.meta.resolve('#bundle/app.js'))}).then(({ startApp }) => startApp())`;
  const { stderr } = spawnSync(process.execPath, ['-e', script], {
    encoding: 'utf8',
  });
  assert.match(stderr, /TypeError/);
  assert.match(stderr, /src\/app\/app\.ts:\d+:\d+/);
});
