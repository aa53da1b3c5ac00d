/** The client has all calls; its types are those of the service's schemas, and serve a program that has nothing but the package. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Skilltrace } from '../../src/client/index.js';
import { checkConsumer, checkReceiver } from '../support/client/client-consumer.js';
import { clientTypes } from '../support/client/client-types.js';
import { described } from '../support/http/description.js';
import { root } from '../support/runner/root.js';
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

test('strict programs find them in the package; the client itself needs no types of Node', async (t) => {
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
  checkReceiver(dir);
});

/** For clients of xAPI, and for tools. */
const ofOthers = ['postStatements', 'putStatement', 'aboutXapi', 'openapi'];

test('every call of the description is a method of the client, which its page names', () => {
  const page = readFileSync(join(root, 'docs/client.md'), 'utf8');
  const ids = Object.values(described.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  const client = new Skilltrace({ baseUrl: '' });
  assert.deepEqual(ids.filter((id) => !(id in client)).sort(), [...ofOthers].sort());
  const called = ids.filter((id) => !ofOthers.includes(id));
  assert.deepEqual(
    called.filter((id) => !page.includes(`\`${id}\``)),
    [],
  );
});
