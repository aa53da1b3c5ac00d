import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { endOf } from '../support/commands/command.js';
import { answers, assistmentsAnswers, runImport, startImport, stored } from '../support/commands/imports.js';
import { type Servers, startServers } from '../support/servers/servers.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const [rows, learners] = [40_000, 300];

for (const [format, content] of [
  ['Skilltrace', answers(rows, learners)],
  ['ASSISTments 2009, sorted and merged,', assistmentsAnswers(rows, learners)],
] as const)
  test(`\`npm run import\` of ${format} counts every answer once and in order if it is killed and repeated`, {
    timeout: 600_000,
  }, async (t) => {
    const servers = await startServers(t);
    const folder = await tempDir(t);
    const file = join(folder, 'answers.csv');
    await writeFile(file, content);
    await importWithKills(t, servers, file);
    const correct = rows - rows / 10;
    assert.deepEqual(await stored(servers), { rows, learners, correct, ids: rows, disordered: 0 });
  });

/** Kills three imports of the file, completes it, and waits until ClickHouse has all rows. */
async function importWithKills(t: TestContext, servers: Servers, file: string): Promise<void> {
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
    const empty = `${file}.empty`;
    await writeFile(empty, answers(0, 1));
    assert.equal((await runImport(servers, empty)).code, 0);
  }
  await waitFor('an empty outbox', async () => (await countWaiting()) === 0);
}
