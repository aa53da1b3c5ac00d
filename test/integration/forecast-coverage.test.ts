import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { encodeForecastRow, type ServedForecast } from '../../src/contracts/journal/journal.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { countOf, testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';

const dayMs = 86_400_000;

/** Computed apart, from asin(sqrt(share)) and sqrt(sd² + 1 / (4 m)). */
const expectedOutcomes = [
  {
    user_id: 'a',
    history: 19,
    answers: 16,
    correct: 10,
    observed_share: 0.625,
    z: -0.496122,
    ...{ covered_50: 1, covered_80: 1, covered_95: 1 },
    ...{ width_50: 0.188007, width_80: 0.354532, width_95: 0.531922 },
    squared_error: 0.005625,
    brier: 0.24,
  },
  {
    user_id: 'b',
    history: 1,
    answers: 10,
    correct: 2,
    observed_share: 0.2,
    z: -4.736129,
    ...{ covered_50: 0, covered_80: 0, covered_95: 0 },
    ...{ width_50: 0.125493, width_80: 0.236306, width_95: 0.353608 },
    squared_error: 0.49,
    brier: 0.65,
  },
  {
    user_id: 'c',
    history: 500,
    answers: 25,
    correct: 17,
    observed_share: 0.68,
    z: 1.841339,
    ...{ covered_50: 0, covered_80: 0, covered_95: 1 },
    ...{ width_50: 0.129628, width_80: 0.247392, width_95: 0.380169 },
    squared_error: 0.0324,
    brier: 0.25,
  },
];

const expectedCoverage = [
  {
    ...{ tenant: 'default', forecast_days: 7, history_from: 1, history_to: 19 },
    ...{ cases: 2, learners: 2, answers: 26 },
    ...{ coverage_50: 0.5, coverage_80: 0.5, coverage_95: 0.5, mean_width_80: 0.295419 },
    ...{ expected_share: 0.8, observed_share: 0.4125, brier: 0.445 },
  },
  {
    ...{ tenant: 'default', forecast_days: 7, history_from: 500, history_to: null },
    ...{ cases: 1, learners: 1, answers: 25 },
    ...{ coverage_50: 0, coverage_80: 0, coverage_95: 1, mean_width_80: 0.247392 },
    ...{ expected_share: 0.5, observed_share: 0.68, brier: 0.25 },
  },
];

test('observed coverage of served forecasts', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl, analystUrl } = await freshDatabase();
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const madeAt = Date.UTC(2026, 0, 10, 15);
  const { accuracy } = servedForecast();
  const store = (changes: readonly Partial<ServedForecast>[]) =>
    createJournalWarehouse(client).insert(
      'forecast',
      changes.map((change) => Buffer.from(encodeForecastRow(servedForecast(change)))),
    );

  await t.test('by figures computed by hand', async () => {
    await store([
      // Not the last of their day, so that they do not count.
      { userId: 'a', madeAt: madeAt - 3, accuracy: { ...accuracy, expected: 0.1 } },
      { userId: 'a', madeAt: madeAt - 2, level: 0.95, accuracy: { ...accuracy, expected: 0.2 } },
      { userId: 'a', madeAt, learnerSeq: 19 },
      { userId: 'b', madeAt, learnerSeq: 1, accuracy: { ...accuracy, expected: 0.9, sd: 0.05 } },
      { userId: 'c', madeAt, learnerSeq: 500, accuracy: { ...accuracy, expected: 0.5, sd: 0 } },
      { userId: 'nine answers', madeAt },
      { userId: 'no answers', madeAt },
      { userId: 'a', madeAt: Date.now() },
      { tenant: 'other', userId: 'a', madeAt },
    ]);
    const day = (n: number): number => Date.UTC(2026, 0, 10 + n, 23, 59, 59, 999);
    await answers(client, 'a', [
      [day(0), 50, 50],
      [day(1) - dayMs + 1, 8, 6],
      [day(7), 8, 4],
      [day(7) + 1, 30, 0],
    ]);
    await answers(client, 'b', [[day(2), 10, 2]]);
    await answers(client, 'c', [[day(3), 25, 17]]);
    await answers(client, 'nine answers', [[day(3), 9, 5]]);
    const outcomes = await selectRows<Record<string, number>>(
      client,
      `SELECT user_id, toString(made_day) AS made_day, forecast_days, history, toUInt32(answers) AS answers,
         toUInt32(correct) AS correct, observed_share, round(z, 6) AS z, covered_50, covered_80, covered_95,
         round(interval_width_50, 6) AS width_50, round(interval_width_80, 6) AS width_80,
         round(interval_width_95, 6) AS width_95, round(squared_error, 6) AS squared_error, round(brier, 6) AS brier
       FROM forecast_outcomes ORDER BY user_id`,
    );
    const made = { made_day: '2026-01-10', forecast_days: 7 };
    assert.deepEqual(
      outcomes,
      expectedOutcomes.map((outcome) => ({ ...made, ...outcome })),
    );
    const coverage = await selectRows<Record<string, number | null>>(
      client,
      `SELECT tenant, forecast_days, history_from, history_to, toUInt32(cases) AS cases,
         toUInt32(learners) AS learners, toUInt32(answers) AS answers, coverage_50, coverage_80, coverage_95,
         round(mean_width_80, 6) AS mean_width_80, round(expected_share, 6) AS expected_share,
         round(observed_share, 6) AS observed_share, round(brier, 6) AS brier
       FROM forecast_coverage ORDER BY history_from`,
    );
    assert.deepEqual(coverage, expectedCoverage);
  });

  await t.test('a horizon that is not over is not scored', async () => {
    const today = Math.floor(Date.now() / dayMs) * dayMs;
    const days = Array.from({ length: 12 }, (_, i) => today - i * dayMs + dayMs / 2);
    await store(days.map((at) => ({ tenant: 'now', userId: 'd', madeAt: at })));
    await answers(
      client,
      'd',
      days.map((at) => [at, 10, 5]),
      'now',
    );
    const [row] = await selectRows<{ scored: number; over: number }>(
      client,
      `SELECT toUInt32(count()) AS scored, (SELECT toUInt32(count()) FROM forecasts
         WHERE tenant = 'now' AND toDate(made_at) + 7 < toDate(now('UTC'))) AS over
       FROM forecast_outcomes WHERE tenant = 'now'`,
    );
    assert.ok((row?.over ?? 0) >= 4 && (row?.over ?? 0) <= 5, JSON.stringify(row));
    assert.equal(row?.scored, row?.over);
  });

  await t.test('every column and view says what it means, and analysts may read them', async (t) => {
    const names = "'goals', 'skill_catalogue', 'forecasts', 'forecast_outcomes', 'forecast_coverage'";
    const tables = "'goal_changes', 'skill_changes', 'served_forecasts'";
    const [bare] = await selectRows<{ columns: number; tables: number }>(
      client,
      `SELECT toUInt32(countIf(comment = '')) AS columns, toUInt32(uniqExact(table)) AS tables FROM system.columns
       WHERE database = currentDatabase() AND table IN (${names}, ${tables})`,
    );
    assert.deepEqual(bare, { columns: 0, tables: 8 });
    const [silentTables] = await selectRows<{ n: number }>(
      client,
      `SELECT toUInt32(countIf(comment = '')) AS n FROM system.tables
       WHERE database = currentDatabase() AND name IN (${names}, ${tables})`,
    );
    assert.equal(silentTables?.n, 0);
    const analyst = new URL(analystUrl);
    analyst.pathname = new URL(url).pathname;
    const reader = connectWarehouse(analyst.href);
    t.after(() => reader.close());
    for (const view of names.split(', ').map((name) => name.slice(1, -1)))
      assert.equal(await countOf(reader, view), await countOf(client, view), view);
    assert.ok((await countOf(reader, 'forecast_outcomes')) >= 7);
  });
});

/** Answers of a learner at some times, so many of them right; through the table, so that the rollups follow. */
async function answers(
  client: ClickHouseClient,
  userId: string,
  times: readonly (readonly [at: number, answers: number, correct: number])[],
  tenant = 'default',
): Promise<void> {
  const rows = times.flatMap(([at, count, correct], i) =>
    Array.from({ length: count }, (_, n) => ({
      tenant,
      user_id: userId,
      skill_id: `skill-${n % 3}`,
      is_correct: n < correct ? 1 : 0,
      occurred_at: sqlTime(at),
      received_at: sqlTime(at),
      learner_seq: 1000 * i + n + 1,
    })),
  );
  await client.insert({ table: 'attempts', format: 'JSONEachRow', values: rows });
}

const sqlTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
