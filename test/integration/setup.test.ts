import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { tempDir } from '../support/temp.js';

const MAIN =
  "export async function main(argv: string[]): Promise<void> { console.log('ran', argv.join()); }\n";

/** A checkout with the real setup, build and packages, and a service of one line. */
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

test('The setup builds once, runs the command without other output, and rebuilds after a change', async (t) => {
  const dir = await checkout(t);
  const readBuildTime = async () => (await stat(join(dir, 'dist/.skilltrace-setup'))).mtimeMs;
  await writeFile(join(dir, 'src/removed.ts'), 'export const removed = 1;\n');
  assert.deepEqual(await setup(dir, 'start', 'a', 'b'), { stdout: 'ran a,b\n', stderr: '', code: 0 });
  assert.ok(existsSync(join(dir, 'dist/src/removed.js')));
  const first = await readBuildTime();
  await setup(dir, 'start');
  assert.equal(await readBuildTime(), first);

  await rm(join(dir, 'src/removed.ts'));
  await writeFile(join(dir, 'src/part.tsx'), "export const part = 'one';\n");
  assert.equal((await setup(dir, 'start')).code, 0);
  assert.equal(existsSync(join(dir, 'dist/src/removed.js')), false);
  const second = await readBuildTime();
  await writeFile(join(dir, 'src/part.tsx'), "export const part = 'two';\n");
  await setup(dir, 'start');
  assert.equal(new Set([first, second, await readBuildTime()]).size, 3);

  await writeFile(join(dir, 'src/main.ts'), "export { main } from './missing.js';\n");
  const failed = await setup(dir, 'start');
  assert.deepEqual([failed.code, failed.stdout], [1, '']);
  assert.match(failed.stderr, /building failed\n.*Could not resolve "\.\/missing\.js"\s+src\/main\.ts:1:21/s);
  assert.ok(existsSync(join(dir, 'dist/bundle/main.js')), 'the failed build removed the previous one');
});

test('Two setups at the same time both succeed, also with the lock of a dead process', async (t) => {
  const dir = await checkout(t);
  await mkdir(join(dir, '.setup-lock'));
  const lock = JSON.stringify({ pid: process.pid, startedAt: '12345' });
  await writeFile(join(dir, '.setup-lock/lock.3'), lock);
  const results = await Promise.all(['1', '2'].map((arg) => setup(dir, 'start', arg)));
  for (const [i, { stdout, code }] of results.entries())
    assert.deepEqual([stdout, code], [`ran ${i + 1}\n`, 0]);
});

test('The setup passes a signal to the command that it loads, and prints help for unknown commands', async (t) => {
  const dir = await checkout(t);
  const main = `
process.kill(process.pid, 'SIGTERM');
export const main = (): Promise<void> =>
  new Promise((resolve) => {
    const waiting = setInterval(() => undefined, 1000);
    process.once('SIGTERM', () => {
      clearInterval(waiting);
      console.log('stopped');
      resolve();
    });
  });
`;
  await writeFile(join(dir, 'src/main.ts'), main);
  assert.deepEqual(await setup(dir, 'start'), { stdout: 'stopped\n', stderr: '', code: 0 });
  assert.match((await setup(dir, '--help')).stdout, /npm run start .*npm run test /s);
  const unknown = await setup(dir, 'dance');
  assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
  assert.match(unknown.stderr, /Unknown command dance/);
});
