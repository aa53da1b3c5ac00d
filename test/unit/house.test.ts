/** The rules of the house that tools can check: format, lint, import direction, types, dead code, one home for settings. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../support/root.js';
import { tempDir } from '../support/temp.js';

function run(tool: string, args: readonly string[], cwd = root): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(join(root, 'node_modules/.bin', tool), args, {
    cwd,
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

test('formatted and linted, imports pointing the right way and never in a circle', () => {
  const { status, output } = run('biome', ['ci', '--colors=off', '.']);
  assert.equal(status, 0, output);
});

test('types fit', () => {
  const { status, output } = run('tsc', ['-p', '.', '--pretty', 'false']);
  assert.equal(status, 0, output);
});

test('no dead code, no unused and no undeclared packages', () => {
  const { status, output } = run('knip', []);
  assert.equal(status, 0, output);
});

const forbidden: readonly (readonly [folder: string, module: string])[] = [
  ['src/domain', '../store/client.js'],
  ['src/domain', 'node:fs'],
  ['src/contracts', '../services/ports.js'],
  ['src/services', '../http/server.js'],
  ['src/services', '../config.js'],
  ['src/http', '../store/client.js'],
  ['src/store', '../warehouse/client.js'],
  ['src/jobs', '../app.js'],
  ['src', './cli/import.js'],
  ['workers', '../src/services/ports.js'],
];

test('an import against the direction is found, in every layer', async (t) => {
  const dir = await tempDir(t);
  copyFileSync(join(root, 'biome.json'), join(dir, 'biome.json'));
  for (const [i, [folder, module]] of forbidden.entries()) {
    mkdirSync(join(dir, folder), { recursive: true });
    writeFileSync(
      join(dir, folder, `x${i}.ts`),
      `import * as other from '${module}';\nexport const used = other;\n`,
    );
  }
  const { output } = run('biome', ['lint', '--reporter=github', '--vcs-enabled=false', '.'], dir);
  for (const [i, [folder, module]] of forbidden.entries()) {
    const found = output
      .split('\n')
      .some((line) => line.includes('noRestrictedImports') && line.includes(`${folder}/x${i}.ts`));
    assert.ok(found, `${folder} may import ${module}: ${output}`);
  }
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
