import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { checkConsumer } from '../support/client/client-consumer.js';
import { root } from '../support/runner/root.js';
import { environment } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';

function run(cwd: string, command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env: environment() });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

/** Packs a copy of the checkout, because the build would replace the one that runs this test. */
function pack(dir: string): string {
  mkdirSync(dir);
  const names = ['src', 'workers', 'test', 'docs', 'README.md', 'LICENSE', '.npmrc', '.gitignore'];
  for (const name of [...names, 'package.json', 'package-lock.json', 'tsconfig.json'])
    cpSync(join(root, name), join(dir, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  return join(dir, run(dir, 'npm', 'pack').trim());
}

/** A platform that depends on the package, locked to the versions of the checkout, which are in npm's cache. */
function lockPlatform(dir: string, tarball: string): void {
  const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'));
  const { version, dependencies, bin } = read('package.json');
  const { '': _, ...locked } = read('package-lock.json').packages;
  const served = Object.entries<{ dev?: boolean }>(locked).filter(([, { dev }]) => !dev);
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  const platform = { name: 'platform', dependencies: { skilltrace: `file:${tarball}` } };
  const skilltrace = { version, resolved: `file:${tarball}`, integrity, dependencies, bin };
  const packages = { '': platform, 'node_modules/skilltrace': skilltrace, ...Object.fromEntries(served) };
  const lock = { name: 'platform', lockfileVersion: 3, requires: true, packages };
  mkdirSync(dir);
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ ...platform, type: 'module', private: true }));
  writeFileSync(join(dir, 'package-lock.json'), JSON.stringify(lock));
}

const use = `
import { Skilltrace } from 'skilltrace/client';
const skilltrace = new Skilltrace({ baseUrl: process.argv[2], apiKey: process.argv[3] });
await skilltrace.track({ user_id: 'ada', skill_id: 'algebra', is_correct: true });
await skilltrace.flush();
console.log((await skilltrace.mastery('ada')).skills[0].mastery);
`;

test('The npm package contains the program, the client and its types, and works offline', async (t) => {
  const dir = await tempDir(t);
  const tarball = pack(join(dir, 'checkout'));
  const files = run(dir, 'tar', 'tzf', tarball).trim().split('\n');
  const others = files.filter((file) => !/^package\/(dist\/(bundle|client|types)\/|[^/]+$)/.test(file));
  assert.deepEqual(others.sort(), ['package/src/dir-lock.js', 'package/src/setup.mjs']);

  const platform = join(dir, 'platform');
  lockPlatform(platform, tarball);
  run(platform, 'npm', 'ci', '--offline', '--no-audit', '--no-fund', '--loglevel=error');
  const help = run(platform, 'npx', '--offline', 'skilltrace', '--help');
  assert.match(help, /npx skilltrace start/);
  assert.doesNotMatch(help, /skilltrace (bench|test)/);
  checkConsumer(platform);

  // npx would not pass the signal on.
  const service = spawn(join(platform, 'node_modules/.bin/skilltrace'), ['start'], {
    cwd: platform,
    env: { ...environment(), PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => service.kill('SIGKILL'));
  let line = '';
  for await (line of createInterface(service.stdout)) if (line.includes('listens on')) break;
  const [, url = '', key = ''] = /(http:\S+) \(development API key: ([^);]+)/.exec(line) ?? [];
  writeFileSync(join(platform, 'use.js'), use);
  assert.equal(run(platform, process.execPath, 'use.js', url, key), '0.6927\n');
  service.kill('SIGTERM');
  assert.deepEqual(await once(service, 'exit'), [0, null]);
});
