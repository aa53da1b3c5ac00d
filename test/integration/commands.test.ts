/** What every command has in common: its help, and one line for arguments that it does not know. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Ended, endOf, runCommand } from '../support/commands/command.js';

const setup = fileURLToPath(import.meta.resolve('#root/src/setup.mjs'));
const commands = [
  ...readFileSync(setup, 'utf8').matchAll(/^ {2}'?([\w:]+)'?: \{ about: .*, module: '(.+)\.js' \},$/gm),
];

/** As npm does it. */
const spawned = (...args: string[]): Promise<Ended> =>
  endOf(spawn(process.execPath, [setup, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }));

/** Each is spawned once; a command line tool can be asked for the rest in this process. */
const refusedBy = (name: string, module: string): Promise<Ended> =>
  module.startsWith('bundle/cli-')
    ? runCommand(name, {}, '--no-such-option')
    : spawned(name, '--no-such-option');

test('a command writes everything into a pipe whose reader is slow', async () => {
  // Node's own pipes are sockets, which take more than a pipe of the shell.
  const line = '"$0" "$1" openapi | { sleep 1; wc -c; }';
  const piped = spawn('sh', ['-c', line, process.execPath, setup], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [slow, whole] = [await endOf(piped), await runCommand('openapi', {})];
  assert.deepEqual([slow.err, Number(slow.out)], ['', Buffer.byteLength(whole.out)]);
});

test('there are commands', () => {
  assert.equal(commands.length, 16);
});

for (const [, name = '', module = ''] of commands) {
  test(`${name}: --help explains, an unknown option is told in one line`, { timeout: 600_000 }, async () => {
    const help = await spawned(name, '--help');
    assert.deepEqual([help.code, help.err], [0, '']);
    const command = name === 'start' || name === 'test' ? `npm ${name}` : `npm run ${name}`;
    assert.ok(help.out.startsWith(`Usage: ${command}`), help.out.slice(0, 200));
    const wrong = await refusedBy(name, module);
    assert.deepEqual([wrong.code === 0, wrong.out], [false, ''], wrong.err);
    assert.match(wrong.err, /--no-such-option/);
    assert.match(wrong.err, /--help/);
    assert.doesNotMatch(wrong.err, /^ +at /m, 'no stack');
  });
}
