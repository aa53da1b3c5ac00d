/** The link that a demo ends with: its key reaches the demo of the running service, until the reset. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runCommand, runOnTerminal } from '../support/commands/command.js';
import { startServers } from '../support/servers/servers.js';
import { runService } from '../support/servers/service-process.js';
import { waitFor } from '../support/wait.js';

const little = ['--until', '2026-06-30', '--learners', '1'];

/** A browser that notes which page it was to show. */
function fakeBrowser(dir: string): Record<string, string> {
  const file = join(dir, 'xdg-open');
  writeFileSync(
    file,
    `#!/bin/sh\nprintf %s "$*" > ${dir}/opened.tmp && mv ${dir}/opened.tmp ${dir}/opened\n`,
  );
  chmodSync(file, 0o700);
  return { PATH: `${dir}:${process.env.PATH}`, DISPLAY: ':0', CI: '', SSH_CONNECTION: '' };
}

async function startOn(t: TestContext, env: Record<string, string>): Promise<string> {
  const running = runService(t, { ...env, API_KEYS: 'own', LOG_LEVEL: 'silent' });
  const line = /listens on (\S+)/;
  await waitFor('the start', () => line.test(running.written()));
  return line.exec(running.written())?.[1] ?? '';
}

test('the link of a demo opens its tenant on the service that runs, and ends with the reset', {
  timeout: 600_000,
}, async (t) => {
  const { env } = await startServers(t);
  const dir = env.DATA_DIR as string;
  const terminal = { ...env, ...fakeBrowser(dir) };
  const address = await startOn(t, env);
  const made = await runOnTerminal('demo', terminal, ...little);
  assert.equal(made.code, 0, made.err);
  const key = readFileSync(join(dir, 'demo-key'), 'utf8').trim();
  const link = `${address}/dashboard#key=${key}`;
  assert.ok(made.out.endsWith(`\nDashboard: ${link}\n`), made.out);

  await waitFor('the browser', () => existsSync(join(dir, 'opened')));
  const page = readFileSync(join(dir, 'opened'), 'utf8');
  assert.equal(page, join(dir, 'demo.html'), 'no argument holds the key');
  assert.equal(statSync(page).mode & 0o777, 0o600);
  assert.ok(readFileSync(page, 'utf8').includes(`url=${link}"`));

  const headers = { 'X-API-Key': key };
  const list = () => fetch(`${address}/api/v1/skills?limit=1`, { headers });
  const { data } = (await (await list()).json()) as { data: { skills: unknown[] } };
  assert.equal(data.skills.length, 1);
  const again = await runCommand('demo', env, ...little);
  assert.deepEqual([again.code, again.out], [1, '']);
  assert.ok(again.err.includes(`(${link})`), again.err);

  assert.equal((await runCommand('demo', env, '--reset')).code, 0);
  assert.deepEqual([existsSync(join(dir, 'demo-key')), existsSync(page)], [false, false]);
  await waitFor('the end of the key', async () => (await list()).status === 401);
});
