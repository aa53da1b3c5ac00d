/** Rules for the code that tools check. Imports have their own test (import-rules). */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../support/runner/root.js';

function run(tool: string, args: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(join(root, 'node_modules/.bin', tool), args, {
    cwd: root,
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

test('The code is formatted and passes the linter', () => {
  const { status, output } = run('biome', ['ci', '--colors=off', '.']);
  assert.equal(status, 0, output);
});

test('The code passes the type checker', () => {
  for (const project of ['.', 'src/pages']) {
    // One checker, because every checker repeats the work on shared types. --incremental skips unchanged files.
    const file = join(root, 'node_modules/.cache', `${project.replace('/', '-')}.tsbuildinfo`);
    const cheap = ['--checkers', '1', '--incremental', '--tsBuildInfoFile', file];
    const { status, output } = run('tsc', ['-p', project, '--pretty', 'false', ...cheap]);
    assert.equal(status, 0, output);
  }
});

test('The code has no unused exports and no unused or undeclared packages', () => {
  const { status, output } = run('knip', []);
  assert.equal(status, 0, output);
});

test('Only src/config.ts reads environment variables', () => {
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
