/** The rules that tools can check: format, lint, types, dead code, one home for settings (rooms.test.ts has the imports). */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../support/runner/root.js';

function run(tool: string, args: readonly string[], cwd = root): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(join(root, 'node_modules/.bin', tool), args, {
    cwd,
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

test('formatted and linted, no circle of imports', () => {
  const { status, output } = run('biome', ['ci', '--colors=off', '.']);
  assert.equal(status, 0, output);
});

for (const folder of ['.', 'src/pages'])
  test(`types fit: ${folder}`, () => {
    const { status, output } = run('tsc', ['-p', folder, '--pretty', 'false']);
    assert.equal(status, 0, output);
  });

test('no dead code, no unused and no undeclared packages', () => {
  const { status, output } = run('knip', []);
  assert.equal(status, 0, output);
});

test('only config.ts reads the environment', () => {
  const files = ['src', 'workers', 'bench'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
  const readers = files.filter(
    (file) =>
      /\.(c?ts|mjs)$/.test(file) &&
      /(?<!')process\.env(?!\.TZ = )/.test(readFileSync(join(root, file), 'utf8')),
  );
  assert.deepEqual(readers, ['src/config.ts']);
});
