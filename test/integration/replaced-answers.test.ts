/** Answers that a change of the time zone rewrites, if Redis is lost before the rewritten rows are stored. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import type { AttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createCorrectionWarehouse } from '../../src/warehouse/maintenance/correction-warehouse.js';
import { createRebuildSource } from '../../src/warehouse/reads/rebuild-source.js';
import { everyView, oldAnswers, partitions, store } from '../support/builders/old-answers.js';
import { countOf, emptyTables, fileDatabase } from '../support/inspect/warehouse.js';

const { client } = await fileDatabase({ after });
const warehouse = createCorrectionWarehouse(client);
const source = createRebuildSource(client, 'http://service:password@localhost', 1000);
const rows = oldAnswers([1, 2]);
const { tenant, userId } = (rows[0] as AttemptRow).event;
const partition = partitionOf(tenant, userId, partitions);
const isOfLearner = ({ event }: AttemptRow): boolean => event.tenant === tenant && event.userId === userId;

beforeEach(() => emptyTables(client));

const readRows = () => selectRows(client, 'SELECT * FROM attempts ORDER BY tenant, user_id, learner_seq');

/** Removes the learner's rows from the third on, as the drain does before it stores the rewritten ones. */
async function remove(block: number): Promise<void> {
  const below = { ms: block + 1, seq: 0 };
  await warehouse.remove([{ tenant, userId, partition, below, fromSeq: 3, goalAt: 0, keepsAnswers: true }]);
}

test('restoreReplaced returns answers and sums of lost partitions, once', async () => {
  const block = await store(client, rows);
  const before = [await readRows(), await everyView(client)];
  await remove(block);
  assert.equal((await readRows()).length, rows.length - rows.filter(isOfLearner).length + 2);
  await source.restoreReplaced([(partition + 1) % partitions]);
  assert.notDeepEqual([await readRows(), await everyView(client)], before, 'restores another partition');
  for (let times = 0; times < 2; times++) {
    await source.restoreReplaced([partition]);
    assert.deepEqual([await readRows(), await everyView(client)], before);
  }
  await warehouse.dropCopies(tenant);
  assert.equal(await countOf(client, 'replaced_attempts'), 0);
});

test('restoreReplaced adds nothing if the rows are stored again, retracted or archived', async () => {
  const block = await store(client, rows);
  await remove(block);
  await store(
    client,
    rows.filter((row) => isOfLearner(row) && row.figures.learnerSeq >= 3),
  );
  const stored = await readRows();
  await source.restoreReplaced([partition]);
  assert.deepEqual(await readRows(), stored);

  // A retraction removes the last number.
  const last = Math.max(...rows.filter(isOfLearner).map(({ figures }) => figures.learnerSeq));
  const learner = `tenant = '${tenant}' AND user_id = {userId:String}`;
  const query_params = { userId };
  await client.command({
    query: `DELETE FROM attempts WHERE ${learner} AND learner_seq = ${last}`,
    query_params,
  });
  await client.command({
    query: `INSERT INTO taken_back (tenant, user_id, event_id, received_at, taken_back_at)
      VALUES ('${tenant}', {userId:String}, 'e', now64(3), now64(3))`,
    query_params,
  });
  await source.restoreReplaced([partition]);
  assert.equal((await readRows()).length, stored.length - 1);

  await client.command({ query: 'TRUNCATE TABLE taken_back' });
  await client.command({ query: 'INSERT INTO archived_months (month, answers) VALUES (203001, 1)' });
  await source.restoreReplaced([partition]);
  assert.equal((await readRows()).length, stored.length - 1);
});
