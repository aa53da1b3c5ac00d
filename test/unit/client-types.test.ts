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

/** With WRITE_DOCS=1 the test writes the file. */
test('src/client/types.ts has the types of the schemas of the service', () => {
  const biome = join(root, 'node_modules/.bin/biome');
  const options = { cwd: root, input: clientTypes(), encoding: 'utf8' } as const;
  const { stdout, status, stderr } = spawnSync(biome, ['format', '--stdin-file-path=types.ts'], options);
  assert.equal(status, 0, stderr);
  const file = join(root, 'src/client/types.ts');
  if (process.env.WRITE_DOCS === '1') writeFileSync(file, stdout);
  else
    assert.equal(readFileSync(file, 'utf8'), stdout, 'WRITE_DOCS=1 npm test -- unit/client-types writes it');
});

test('A strict program compiles with the types of the package, which need no types of Node', async (t) => {
  const dir = await tempDir(t);
  const installed = join(dir, 'node_modules/skilltrace');
  mkdirSync(installed, { recursive: true });
  copyFileSync(join(root, 'package.json'), join(installed, 'package.json'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  const tsc = join(root, 'node_modules/.bin/tsc');
  const args = ['-p', join(root, 'src/client'), '--outDir', join(installed, 'dist/types')];
  const { status, stdout } = spawnSync(tsc, args, { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  checkConsumer(dir);
  checkReceiver(dir);
});

test('Skilltrace has a method for every call of the description, and docs/client.md names it', () => {
  const page = readFileSync(join(root, 'docs/client.md'), 'utf8');
  const client = new Skilltrace({ baseUrl: '' });
  const ids = Object.values(described.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  const missing = ids.filter((id) => !(id in client) || !page.includes(`\`${id}\``));
  // For xAPI clients and for tools.
  assert.deepEqual(missing.sort(), ['aboutXapi', 'openapi', 'postStatements', 'putStatement']);
});
