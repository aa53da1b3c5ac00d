/** What every command has in common: its help, and one line for arguments that it does not know. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Ended, endOf } from '../support/command.js';

const built = new URL('../../', import.meta.url);
const setup = readFileSync(new URL('../src/setup.mjs', built), 'utf8');
const modules = [...setup.matchAll(/^ {2}'?([\w:]+)'?: \{ about: .*, module: '(.+)' \},$/gm)];

/** As the set-up does it, which tells the message of a StartError that a command throws. */
const program = `import(process.argv[1])
  .then(({ main }) => main(process.argv.slice(2)))
  .catch((error) => {
    process.stderr.write(error.name === 'StartError' ? error.message : error.stack);
    process.exitCode = 1;
  });`;
const run = (module: string, argument: string): Promise<Ended> => {
  const args = ['-e', program, '--', new URL(module, built).href, argument];
  return endOf(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
};

test('there are commands', () => {
  assert.equal(modules.length, 13);
});

for (const [, name = '', module = ''] of modules) {
  test(`${name}: --help explains, an unknown option is told in one line`, { timeout: 600_000 }, async () => {
    const help = await run(module, '--help');
    assert.deepEqual([help.code, help.err], [0, '']);
    const command = name === 'start' || name === 'test' ? `npm ${name}` : `npm run ${name}`;
    assert.ok(help.out.startsWith(`Usage: ${command}`), help.out.slice(0, 200));
    const wrong = await run(module, '--no-such-option');
    assert.deepEqual([wrong.code === 0, wrong.out], [false, ''], wrong.err);
    assert.match(wrong.err, /--no-such-option/);
    assert.match(wrong.err, /--help/);
    assert.doesNotMatch(wrong.err, /^ +at /m, 'no stack');
  });
}
