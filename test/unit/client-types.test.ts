/** The client's types are those of the service's schemas, and serve a program that has nothing but the package. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkConsumer } from '../support/client-consumer.js';
import { clientTypes } from '../support/client-types.js';
import { root } from '../support/root.js';
import { tempDir } from '../support/temp.js';

const file = join(root, 'src/client/types.ts');

function formatted(text: string): string {
  const biome = join(root, 'node_modules/.bin/biome');
  const { stdout, status, stderr } = spawnSync(biome, ['format', '--stdin-file-path=types.ts'], {
    cwd: root,
    input: text,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

/** With WRITE_DOCS=1 in the environment the file is written. */
test('types of requests and answers are those of the schemas', () => {
  const wanted = formatted(clientTypes());
  if (process.env.WRITE_DOCS === '1') writeFileSync(file, wanted);
  else
    assert.equal(readFileSync(file, 'utf8'), wanted, 'WRITE_DOCS=1 npm test -- unit/client-types writes it');
});

test('a strict program finds them in the package; the client itself needs no types of Node', async (t) => {
  const dir = await tempDir(t);
  const installed = join(dir, 'node_modules/skilltrace');
  mkdirSync(installed, { recursive: true });
  copyFileSync(join(root, 'package.json'), join(installed, 'package.json'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  const tsc = join(root, 'node_modules/.bin/tsc');
  const types = join(installed, 'dist/types');
  const { status, stdout } = spawnSync(tsc, ['-p', join(root, 'src/client'), '--outDir', types], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout);
  checkConsumer(dir);
});
