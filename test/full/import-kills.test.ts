/** An import that is killed: whoever runs it again counts every row once. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { connectRedis, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { endOf } from '../support/commands/command.js';
import { answers, runImport, startImport, stored } from '../support/commands/imports.js';
import { type Servers, startServers } from '../support/servers/servers.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

/** A quick machine was through before the kill, which left rows in the outbox: another import drains them. */
async function drainAfter(t: TestContext, servers: Servers, err: string): Promise<void> {
  assert.match(err, /was imported/);
  const file = join(await tempDir(t), 'none.csv');
  await writeFile(file, answers(0, 1));
  assert.equal((await runImport(servers, file)).code, 0);
}

test('an import that is killed again and again counts every row once, in order', {
  timeout: 600_000,
}, async (t) => {
  const servers = await startServers(t);
  const file = join(await tempDir(t), 'answers.csv');
  const rows = 40_000;
  await writeFile(file, answers(rows, 300));
  const redis = connectRedis(servers.env.REDIS_URL as string);
  t.after(() => redis.disconnect());
  await waitUntilReady(redis, 10_000);
  const outbox = createOutbox(redis, 16);
  const known = async () => (await stored(servers)).rows + (await outbox.facts()).outboxLength;
  for (const share of [0.02, 0.3, 0.6]) {
    const child = startImport(t, servers.env, file);
    const ended = endOf(child);
    await waitFor(
      `${share} of the rows`,
      async () => child.exitCode !== null || (await known()) > share * rows,
      90_000,
    );
    child.kill('SIGKILL');
    await ended;
  }
  const { code, out, err } = await runImport(servers, file, '--json');
  if (code === 0) t.diagnostic(out.trim());
  else await drainAfter(t, servers, err);
  await waitFor('the outbox', async () => (await outbox.facts()).outboxLength === 0);
  assert.deepEqual(await stored(servers), {
    rows,
    learners: 300,
    correct: rows - rows / 10,
    ids: rows,
    disordered: 0,
  });
});
