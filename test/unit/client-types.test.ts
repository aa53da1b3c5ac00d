/** The client's types are those of the service's schemas. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { clientTypes } from '../support/client-types.js';
import { root } from '../support/root.js';

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
