/** The bundles that ship. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.resolve('#bundle/main.js')));

/** Imports in minified text, with and without `from`. */
function findImports(name: string): string[] {
  const pattern = /\bimport\s*(?:[\w$*{][^"'`();]*?\bfrom\s*)?["']([\w@./:-]+)["']/g;
  return [...readFileSync(join(folder, name), 'utf8').matchAll(pattern)].map(([, from]) => from as string);
}

/** The bundle and all chunks that it loads. */
function findChunks(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  for (const from of findImports(name)) if (from.startsWith('./')) findChunks(from.slice(2), found);
  return found;
}

test('Each bundle loads few files', () => {
  const threads = { 'track.js': 2, 'forecast.js': 2, 'engine-thread.js': 2, 'clickhouse.js': 2 };
  const programs = { 'main.js': 12, 'api-process.js': 10, 'cli-import.js': 60 };
  for (const [name, limit] of Object.entries({ ...threads, ...programs })) {
    const { size } = findChunks(name);
    assert.ok(size > 1 && size <= limit, `${name}: ${size} files`);
  }
});

test('The bundles import only the packages that have native code or load other files', () => {
  const imports = readdirSync(folder)
    .filter((name) => /\.c?js$/.test(name))
    .flatMap(findImports);
  const packages = new Set(imports.filter((from) => !isBuiltin(from) && !from.startsWith('./')));
  assert.deepEqual([...packages].sort(), ['chdb', 'piscina', 'uWebSockets.js']);
});

test('A stack trace of a bundle names source files and lines', () => {
  const app = JSON.stringify(import.meta.resolve('#bundle/app.js'));
  const script = `import(${app}).then(({ startApp }) => startApp())`;
  const { stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  assert.match(stderr, /TypeError.*src\/app\/app\.ts:\d+:\d+/s);
});
