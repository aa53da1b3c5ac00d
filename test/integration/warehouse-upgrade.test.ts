import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { ContentRefused } from '../../src/services/pipeline-ports.js';
import { readAnswerColumns } from '../../src/warehouse/answer-columns.js';
import { createAttemptWarehouse } from '../../src/warehouse/attempt-warehouse.js';
import { attempts, fittedColumns, originColumns, placedColumns } from '../../src/warehouse/attempts.js';
import { connectWarehouse, ensureDatabase, selectRows } from '../../src/warehouse/client.js';
import { migrate, migrations } from '../../src/warehouse/migrations.js';
import { createTable } from '../../src/warehouse/table.js';
import { freshDatabase } from '../support/embedded.js';
import { madeAnswers, storeAnswers } from '../support/made-answers.js';
import { allOnce, counts, testDatabase } from '../support/warehouse.js';

/** A row as version 1 of the service left it in an outbox. */
/** Each test takes a database of its own. */
const { clickhouseUrl } = await freshDatabase();

const oldRow = (i: number): string =>
  `0\t1\t${i}\tdefault\tu${i % 10}\ts\\\\1\t\te${i}\t1\t30\t\\N\t0.5\t1768478400.000\t1768478400.000\t${i + 1}\t0.3\t0.69\t0.41\t0\t0.3\t0.1\t0.2\t0.1\t0\t1`;
/** As versions 2 and 3 left it, and as it is today. */
const fittedRow = (i: number): string => `${oldRow(i)}\tfitted\t0.1\t0.2\t0.3\t3\t4\t0.5\t1\t55.5\tPLATEAU`;
const placedRow = (i: number): string => `${fittedRow(i)}\tmath\t2.5\t0.75\t1100`;
const newRow = (i: number): string => `${placedRow(i)}\t281474976710655\t7`;

const block = (lines: readonly string[]): Buffer[] => [
  Buffer.from(lines.map((line) => `${line}\n`).join('')),
];
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

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
  await t.test('keeps its rows and takes those that wait in the outbox', async (t) => {
    const client = await oldDatabase(t, clickhouseUrl);
    const names = 'partition_id, outbox_ms, outbox_seq, tenant, user_id, skill_id, item_id, event_id';
    await client.command({
      query: `INSERT INTO attempts (${names}) VALUES (0, 1, 0, 'default', 'u0', 's', '', '')`,
    });
    assert.deepEqual(await migrate(client), [2, 3, 4, 5, 6]);
    assert.deepEqual(await migrate(client), []);
    const warehouse = createAttemptWarehouse(client);
    for (let again = 0; again < 2; again++) {
      const rows = [
        ...range(1, 40).map(oldRow),
        ...range(40, 70).map(fittedRow),
        ...range(70, 85).map(placedRow),
        ...range(85, 100).map(newRow),
      ];
      await warehouse.insert(block(rows), 'mixed');
    }
    assert.deepEqual(await counts(client), allOnce(100));
    const rows = await selectRows(
      client,
      `SELECT DISTINCT parameters_source, difficulty_shift, ability_offset, item_difficulty, rapid_seconds,
         log_time_mean, log_time_sd, rapid, efficiency_index, recommendation_code,
         section, weight, closed_mastery, baseline_total, toFloat64(event_fingerprint) AS event_fingerprint,
         learner_version
       FROM attempts ORDER BY parameters_source, section, learner_version`,
    );
    const unknown = { event_fingerprint: 0, learner_version: 0 };
    const unplaced = { section: '', weight: 1, closed_mastery: null, baseline_total: null, ...unknown };
    const placed = { section: 'math', weight: 2.5, closed_mastery: 0.75, baseline_total: 1100 };
    const fitted = {
      parameters_source: 'fitted',
      difficulty_shift: 0.1,
      ability_offset: 0.2,
      item_difficulty: 0.3,
      rapid_seconds: 3,
      log_time_mean: 4,
      log_time_sd: 0.5,
      rapid: 1,
      efficiency_index: 55.5,
      recommendation_code: 'PLATEAU',
    };
    const zeros = { difficulty_shift: 0, ability_offset: 0, item_difficulty: 0, rapid_seconds: 0 };
    assert.deepEqual(rows, [
      {
        parameters_source: 'default',
        ...zeros,
        log_time_mean: 0,
        log_time_sd: 0,
        rapid: 0,
        efficiency_index: null,
        recommendation_code: '',
        ...unplaced,
      },
      { ...fitted, ...unplaced },
      { ...fitted, ...placed, ...unknown },
      { ...fitted, ...placed, event_fingerprint: 2 ** 48 - 1, learner_version: 7 },
    ]);
  });

  await t.test('broken rows are refused as before, whatever stands beside them', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    const warehouse = createAttemptWarehouse(client);
    const short = oldRow(1).replace(/\t1$/, '');
    const wrong = oldRow(1).replace('0.69', 'x');
    const broken = [
      `${newRow(1)}\t1`,
      `${placedRow(1)}\t1`,
      `${fittedRow(1)}\t1`,
      `${oldRow(1)}\t1`,
      short,
      wrong,
    ];
    for (const row of broken) {
      await assert.rejects(warehouse.insert(block([row]), 'broken'), ContentRefused, row);
      await assert.rejects(warehouse.insert(block([oldRow(2), row]), 'broken'), ContentRefused, row);
    }
    assert.deepEqual(await counts(client), allOnce(0));
    await warehouse.insert(block([oldRow(2)]), 'broken');
    assert.deepEqual(await counts(client), allOnce(1));
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
      range(0, 201).map((learner) => 10 * learner),
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
