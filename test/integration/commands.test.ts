/** What all commands have in common: `--help` and unknown options. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Ended, endOf, runCommand } from '../support/commands/command.js';
import { root } from '../support/runner/root.js';

const setup = join(root, 'src/setup.mjs');
const commands = [
  ...readFileSync(setup, 'utf8').matchAll(/^ {2}'?([\w:]+)'?: \{ about: .*, module: '(.+)\.js' \},$/gm),
];

const spawnSetup = (...args: string[]): Promise<Ended> =>
  endOf(spawn(process.execPath, [setup, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }));

test('npm run openapi writes its whole output into a pipe with a slow reader', async () => {
  // The pipes of Node are sockets, which buffer more than a pipe of the shell.
  const line = '"$0" "$1" openapi | { sleep 1; wc -c; }';
  const piped = spawn('sh', ['-c', line, process.execPath, setup], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [slow, whole] = [await endOf(piped), await runCommand('openapi', {})];
  assert.deepEqual([slow.err, Number(slow.out)], ['', Buffer.byteLength(whole.out)]);
});

test('Every command prints its usage for --help and one line for an unknown option', async () => {
  assert.equal(commands.length, 16);
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const [, name = '', module = ''] of commands) {
    assert.equal(scripts[name], `exec node src/setup.mjs ${name}`);
    // Command line tools run in this process, except `keys` as an example.
    const runsHere = module.startsWith('bundle/cli-') && name !== 'keys';
    const command = module.replace('bundle/cli-', '');
    const run = (arg: string) => (runsHere ? runCommand(command, {}, arg) : spawnSetup(name, arg));
    const help = await run('--help');
    assert.deepEqual([help.code, help.err], [0, ''], name);
    const usage = name === 'start' || name === 'test' ? `npm ${name}` : `npm run ${name}`;
    assert.ok(help.out.startsWith(`Usage: ${usage}`), help.out.slice(0, 200));
    const wrong = await run('--no-such-option');
    assert.deepEqual([wrong.code === 0, wrong.out], [false, ''], wrong.err);
    assert.match(wrong.err, /--no-such-option.*--help/s);
    assert.doesNotMatch(wrong.err, /^ +at /m, 'no stack');
  }
});
