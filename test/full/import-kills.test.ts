import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { endOf } from '../support/commands/command.js';
import { answers, runImport, startImport, stored } from '../support/commands/imports.js';
import { startServers } from '../support/servers/servers.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const [rows, learners] = [40_000, 300];

test('`npm run import` counts every row once and in order if it is killed and repeated', {
  timeout: 600_000,
}, async (t) => {
  const servers = await startServers(t);
  const folder = await tempDir(t);
  const file = join(folder, 'answers.csv');
  await writeFile(file, answers(rows, learners));
  const outbox = createOutbox(await redisOf(t, servers.env.REDIS_URL ?? ''), 16);
  const countWaiting = async (): Promise<number> => (await outbox.facts()).outboxLength;
  const countAll = async (): Promise<number> => (await stored(servers)).rows + (await countWaiting());
  for (const share of [0.02, 0.3, 0.6]) {
    const child = startImport(t, servers.env, file);
    const ended = endOf(child);
    const isFarEnough = async () => child.exitCode !== null || (await countAll()) > share * rows;
    await waitFor(`${share} of the rows`, isFarEnough);
    child.kill('SIGKILL');
    await ended;
  }
  const { code, err } = await runImport(servers, file, '--json');
  if (code !== 0) {
    // A fast machine finished before the kill; another import drains the remaining rows.
    assert.match(err, /was imported/);
    const empty = join(folder, 'empty.csv');
    await writeFile(empty, answers(0, 1));
    assert.equal((await runImport(servers, empty)).code, 0);
  }
  await waitFor('an empty outbox', async () => (await countWaiting()) === 0);
  const correct = rows - rows / 10;
  assert.deepEqual(await stored(servers), { rows, learners, correct, ids: rows, disordered: 0 });
});
