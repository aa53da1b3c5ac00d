import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { tempDir } from '../support/temp.js';

const LIMIT = { timeout: 600_000 };
const MAIN =
  "export async function main(argv: string[]): Promise<void> { console.log('ran', argv.join()); }\n";

/** A checkout with the real set-up, build and packages, but a service of one line. */
async function checkout(t: TestContext): Promise<string> {
  const dir = await tempDir(t);
  await mkdir(join(dir, 'src'));
  const files = [
    ...['package.json', 'package-lock.json', 'tsconfig.json'],
    ...['src/setup.mjs', 'src/build.mjs', 'src/source-maps.ts', 'src/dir-lock.js'],
  ];
  await Promise.all(files.map((file) => copyFile(file, join(dir, file))));
  await symlink(join(process.cwd(), 'node_modules'), join(dir, 'node_modules'));
  await writeFile(join(dir, 'src/main.ts'), MAIN);
  return dir;
}

async function setup(dir: string, ...args: string[]) {
  const child = spawn(process.execPath, ['src/setup.mjs', ...args], { cwd: dir });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  return { stdout, stderr, code };
}

test(
  'it builds, runs the command with nothing else on its output, and builds again on a change only',
  LIMIT,
  async (t) => {
    const dir = await checkout(t);
    await writeFile(join(dir, 'src/gone.ts'), 'export const gone = 1;\n');
    assert.deepEqual(await setup(dir, 'start', 'a', 'b'), { stdout: 'ran a,b\n', stderr: '', code: 0 });
    assert.ok(existsSync(join(dir, 'dist/src/gone.js')));
    const built = await stat(join(dir, 'dist'));
    await setup(dir, 'start');
    assert.equal((await stat(join(dir, 'dist'))).ino, built.ino);

    await rm(join(dir, 'src/gone.ts'));
    assert.equal((await setup(dir, 'start')).code, 0);
    assert.equal(existsSync(join(dir, 'dist/src/gone.js')), false);

    // Pages are sources, too.
    for (const text of ['one', 'two']) {
      const before = await stat(join(dir, 'dist'));
      await writeFile(join(dir, 'src/part.tsx'), `export const part = '${text}';\n`);
      await setup(dir, 'start');
      assert.notEqual((await stat(join(dir, 'dist'))).ino, before.ino, text);
    }
  },
);

test('a build that fails says why and leaves the old one', LIMIT, async (t) => {
  const dir = await checkout(t);
  await setup(dir, 'start');
  await writeFile(join(dir, 'src/main.ts'), "export { main } from './none.js';\n");
  const failed = await setup(dir, 'start');
  assert.deepEqual([failed.code, failed.stdout], [1, '']);
  assert.match(failed.stderr, /building failed\n.*Could not resolve "\.\/none\.js"\s+src\/main\.ts:1:21/s);
  assert.ok(existsSync(join(dir, 'dist/bundle/main.js')));
});

test('two set-ups at once both end well; a dead one’s lock does not stop the next', LIMIT, async (t) => {
  const dir = await checkout(t);
  await mkdir(join(dir, '.setup-lock'));
  await writeFile(join(dir, '.setup-lock/lock.3'), JSON.stringify({ pid: process.pid, startedAt: '12345' }));
  const results = await Promise.all([setup(dir, 'start', '1'), setup(dir, 'start', '2')]);
  assert.deepEqual(
    results.map(({ stdout, code }) => [stdout, code]),
    [
      ['ran 1\n', 0],
      ['ran 2\n', 0],
    ],
  );
});

test('a signal that comes while the command is loaded reaches it', LIMIT, async (t) => {
  const dir = await checkout(t);
  const main = `
process.kill(process.pid, 'SIGTERM');
export async function main(): Promise<void> {
  const waiting = setTimeout(() => console.log('nobody told'), 10_000);
  process.once('SIGTERM', () => {
    clearTimeout(waiting);
    console.log('told');
  });
}
`;
  await writeFile(join(dir, 'src/main.ts'), main);
  assert.deepEqual(await setup(dir, 'start'), { stdout: 'told\n', stderr: '', code: 0 });
});

test('help and unknown commands', LIMIT, async (t) => {
  const dir = await checkout(t);
  assert.match((await setup(dir, '--help')).stdout, /npm run start .*npm run test /s);
  const unknown = await setup(dir, 'dance');
  assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
  assert.match(unknown.stderr, /unknown command dance/);
});
