import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { connectWarehouse, ensureDatabase, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createTable } from '../../src/warehouse/clickhouse/table.js';
import { readAnswerColumns } from '../../src/warehouse/reads/answer-columns.js';
import {
  attempts,
  fittedColumns,
  originColumns,
  placedColumns,
} from '../../src/warehouse/schema/attempts.js';
import { migrate, migrations } from '../../src/warehouse/schema/migrations.js';
import { freshDatabase } from '../support/embedded.js';
import { madeAnswers, storeAnswers } from '../support/made-answers.js';
import { testDatabase } from '../support/warehouse.js';

/** Each test takes a database of its own. */
const { clickhouseUrl } = await freshDatabase();

/** A database as version 1 of the schema made it. */
async function oldDatabase(t: TestContext, clickhouseUrl: string): Promise<ClickHouseClient> {
  const url = new URL(clickhouseUrl);
  url.pathname = '/upgraded';
  await ensureDatabase(url.href);
  const client = connectWarehouse(url.href);
  t.after(() => client.close());
  const names = new Set([...fittedColumns, ...placedColumns, ...originColumns].map(({ name }) => name));
  const columns = attempts.columns.filter(({ name }) => !names.has(name));
  const [first] = migrations;
  assert.ok(first);
  const steps = [[createTable({ ...attempts, columns })], ...first.steps];
  await migrate(client, null, [{ ...first, steps }]);
  return client;
}

test('an upgrade of the warehouse', { timeout: 600_000 }, async (t) => {
  await t.test('keeps its rows, with the defaults of the columns that they lack', async (t) => {
    const client = await oldDatabase(t, clickhouseUrl);
    const names = 'partition_id, outbox_ms, outbox_seq, tenant, user_id, skill_id, item_id, event_id';
    const last = 2 ** 32 - 1;
    await client.command({
      query: `INSERT INTO attempts (${names}) VALUES (0, 1, ${last}, 'default', 'u0', 's', '', '')`,
    });
    assert.deepEqual(await migrate(client), [2, 3, 4, 5, 6, 7]);
    assert.deepEqual(await migrate(client), []);
    const wide = `INSERT INTO attempts (${names}) VALUES (0, 2, ${2 ** 40}, 'default', 'u1', 's', '', '')`;
    await client.command({ query: wide });
    const rows = await selectRows<object>(
      client,
      `SELECT toFloat64(outbox_seq) AS outbox_seq, parameters_source, difficulty_shift, ability_offset, item_difficulty,
         rapid_seconds, log_time_mean, log_time_sd, rapid, efficiency_index, recommendation_code, section, weight,
         closed_mastery, baseline_total, toFloat64(event_fingerprint) AS event_fingerprint, learner_version
       FROM attempts ORDER BY outbox_ms`,
    );
    const defaults = {
      ...{ parameters_source: 'default', difficulty_shift: 0, ability_offset: 0, item_difficulty: 0 },
      ...{ rapid_seconds: 0, log_time_mean: 0, log_time_sd: 0, rapid: 0, efficiency_index: null },
      ...{ recommendation_code: '', section: '', weight: 1, closed_mastery: null, baseline_total: null },
      ...{ event_fingerprint: 0, learner_version: 0 },
    };
    assert.deepEqual(rows, [
      { outbox_seq: last, ...defaults },
      { outbox_seq: 2 ** 40, ...defaults },
    ]);
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
  const parameters = { pInit: 0.3, pLearn: 0.1, pGuess: 0.2, pSlip: 0.1 };
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
