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

/** The bundle with all chunks that it loads, itself first. */
function loadedBy(name: string, known = new Set<string>()): Set<string> {
  if (known.has(name)) return known;
  known.add(name);
  for (const [, chunk] of textOf(name).matchAll(/from "\.\/([\w-]+\.js)"/g)) loadedBy(chunk as string, known);
  return known;
}

test('a program loads a few dozen files instead of hundreds', () => {
  for (const name of [
    'main.js',
    'api-process.js',
    'track.js',
    'forecast.js',
    'clickhouse.js',
    'cli-import.js',
  ]) {
    const files = loadedBy(name).size;
    assert.ok(files < 80, `${name}: ${files} files`);
  }
});

test('nothing is imported from packages but what is native or starts files of its own', () => {
  const imported = bundles.flatMap((name) =>
    [...textOf(name).matchAll(/^import [^"]*? from "([^."#][^"]*)";$/gm)].map(([, from]) => from as string),
  );
  const packages = new Set(imported.filter((from) => !isBuiltin(from)));
  assert.deepEqual([...packages].sort(), ['chdb', 'piscina', 'uWebSockets.js']);
});

test('a stack trace tells files and lines of the sources', () => {
  const script = `import(${JSON.stringify(import.meta.resolve('#bundle/app.js'))}).then(({ startApp }) => startApp())`;
  const { stderr } = spawnSync(process.execPath, ['-e', script], {
    encoding: 'utf8',
  });
  assert.match(stderr, /TypeError/);
  assert.match(stderr, /src\/app\.ts:\d+:\d+/);
});
