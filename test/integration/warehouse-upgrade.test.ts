import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectWarehouse, ensureDatabase, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { readAnswerColumns } from '../../src/warehouse/reads/answer-columns.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';

/** Each test takes a database of its own. */
const { clickhouseUrl } = await freshDatabase();

test('the schema of the warehouse', { timeout: 600_000 }, async (t) => {
  await t.test('an earlier schema version is rejected, and nothing of it is changed', async (t) => {
    const url = new URL(clickhouseUrl);
    url.pathname = '/earlier';
    await ensureDatabase(url.href);
    const client = connectWarehouse(url.href);
    t.after(() => client.close());
    const columns = 'version UInt32, name String';
    await client.command({ query: `CREATE TABLE schema_migrations (${columns}) ORDER BY version` });
    await client.command({ query: "INSERT INTO schema_migrations VALUES (6, 'earlier')" });
    await assert.rejects(createSchema(client), {
      name: 'StartError',
      message: 'ClickHouse has schema version 6, this version of the service needs 10: use another database',
    });
    const tables = await selectRows<{ name: string }>(client, 'SHOW TABLES');
    assert.deepEqual(tables, [{ name: 'schema_migrations' }]);
  });

  await t.test('every new column and table says what it means', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    const [bare] = await selectRows<{ n: number }>(
      client,
      `SELECT toUInt32(count()) AS n FROM system.columns WHERE database = currentDatabase()
       AND table IN ('attempts', 'model_versions', 'skill_parameters') AND comment = ''`,
    );
    assert.equal(bare?.n, 0);
  });
});

test('answers are read into columns', { timeout: 600_000 }, async (t) => {
  const { client } = await testDatabase(t, clickhouseUrl);
  const parameters = { pInit: 0.3, pLearn: 0.1, pGuess: 0.2, pSlip: 0.1, pForget: 0 };
  const skills = ['a', 'ü\u2028'.repeat(60)].map((skillId) => ({ skillId, learners: 200, parameters }));
  const rows = madeAnswers('default', skills, 5, 9);
  await storeAnswers(client, rows);
  await storeAnswers(client, madeAnswers('other', skills, 5, 10));

  await t.test('all of them, learner by learner in their order', async () => {
    const { log, skillIds, itemIds, learnerHash, sampledOneIn } = await readAnswerColumns(
      client,
      'default',
      1e6,
    );
    assert.deepEqual([log.skill.length, log.starts.length, learnerHash.length], [2000, 201, 200]);
    assert.deepEqual([log.skills, log.items, sampledOneIn], [2, itemIds.length - 1, 1]);
    assert.deepEqual(new Set(skillIds), new Set(skills.map(({ skillId }) => skillId)));
    const expected = await selectRows<Record<string, string | number>>(
      client,
      `SELECT skill_id, item_id, is_correct, time_spent_seconds, toFloat64(occurred_at) AS at FROM attempts
       WHERE tenant = 'default' ORDER BY user_id, learner_seq`,
    );
    const read = expected.map((_, place) => ({
      skill_id: skillIds[log.skill[place] ?? 0],
      item_id: itemIds[log.item[place] ?? 0],
      is_correct: log.correct[place],
      time_spent_seconds: log.seconds[place],
      at: (log.at[place] ?? 0) / 1000,
    }));
    assert.deepEqual(read, expected);
    assert.ok(log.difficulty.every(Number.isNaN));
    assert.deepEqual(
      Array.from(log.starts),
      Array.from({ length: 201 }, (_, learner) => 10 * learner),
    );
  });

  await t.test('whole learners only, where there are too many', async () => {
    const { log, sampledOneIn } = await readAnswerColumns(client, 'default', 500);
    assert.ok(sampledOneIn >= 4);
    assert.ok(log.skill.length <= 500 && log.skill.length >= 200, `${log.skill.length} answers`);
    assert.equal(log.skill.length, 10 * (log.starts.length - 1));
  });

  await t.test('a tenant without answers is empty', async () => {
    const { log, skillIds, learnerHash } = await readAnswerColumns(client, 'nobody', 1e6);
    assert.deepEqual(
      [log.skill.length, log.starts, skillIds, learnerHash.length],
      [0, new Uint32Array([0]), [], 0],
    );
  });
});
