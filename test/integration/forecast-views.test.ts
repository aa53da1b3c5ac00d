/** Views of served forecasts, read by the analyst account and compared with values computed by hand. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import {
  encodeForecastRow,
  journalColumns,
  type ServedForecast,
} from '../../src/contracts/journal/journal.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase } from '../support/servers/embedded.js';

const dayMs = 86_400_000;

const storeForecasts = (client: ClickHouseClient, changes: readonly Partial<ServedForecast>[]) =>
  createJournalWarehouse(client).insert(
    'forecast_2',
    changes.map((change) => Buffer.from(encodeForecastRow(servedForecast(change)))),
  );

/** Interval bounds follow from asin(sqrt(share)) and sqrt(sd² + 1 / (4 answers)). */
const outcomes = [
  {
    ...{ user_id: 'a', history: 19, answers: 16, correct: 10, observed_share: 0.625, z: -0.496122 },
    ...{ covered_50: 1, covered_80: 1, covered_95: 1 },
    ...{ width_50: 0.188007, width_80: 0.354532, width_95: 0.531922 },
    ...{ position: -0.82687, uncalibrated_50: 0, uncalibrated_80: 1, uncalibrated_95: 1 },
    ...{ uncalibrated_width: 0.259362 },
    ...{ squared_error: 0.005625, brier: 0.24 },
  },
  {
    ...{ user_id: 'b', history: 1, answers: 10, correct: 2, observed_share: 0.2, z: -4.736129 },
    ...{ covered_50: 0, covered_80: 0, covered_95: 0 },
    ...{ width_50: 0.125493, width_80: 0.236306, width_95: 0.353608 },
    ...{ position: -3.946774, uncalibrated_50: 0, uncalibrated_80: 0, uncalibrated_95: 0 },
    ...{ uncalibrated_width: 0.236306 },
    ...{ squared_error: 0.49, brier: 0.65 },
  },
  {
    ...{ user_id: 'c', history: 500, answers: 25, correct: 17, observed_share: 0.68, z: 1.841339 },
    ...{ covered_50: 0, covered_80: 0, covered_95: 1 },
    ...{ width_50: 0.129628, width_80: 0.247392, width_95: 0.380169 },
    ...{ position: 1.416415, uncalibrated_50: 0, uncalibrated_80: 0, uncalibrated_95: 1 },
    ...{ uncalibrated_width: 0.247392 },
    ...{ squared_error: 0.0324, brier: 0.25 },
  },
];

const coverage = [
  {
    ...{ tenant: 'default', forecast_days: 7, history_from: 1, history_to: 19 },
    ...{ cases: 2, learners: 2, answers: 26 },
    ...{ coverage_50: 0.5, coverage_80: 0.5, coverage_95: 0.5, mean_width_80: 0.295419 },
    ...{ uncalibrated_coverage_50: 0, uncalibrated_coverage_80: 0.5, uncalibrated_coverage_95: 0.5 },
    ...{ uncalibrated_mean_width_80: 0.247834 },
    ...{ expected_share: 0.8, observed_share: 0.4125, brier: 0.445 },
  },
  {
    ...{ tenant: 'default', forecast_days: 7, history_from: 500, history_to: null },
    ...{ cases: 1, learners: 1, answers: 25 },
    ...{ coverage_50: 0, coverage_80: 0, coverage_95: 1, mean_width_80: 0.247392 },
    ...{ uncalibrated_coverage_50: 0, uncalibrated_coverage_80: 0, uncalibrated_coverage_95: 1 },
    ...{ uncalibrated_mean_width_80: 0.247392 },
    ...{ expected_share: 0.5, observed_share: 0.68, brier: 0.25 },
  },
];

const sqlTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');

/** Inserts answers of a learner into the table, so that the rollups are filled. The first `correct` of each group are correct. */
async function insertAnswers(
  client: ClickHouseClient,
  learner: { readonly tenant?: string; readonly user_id: string },
  groups: readonly (readonly [at: number, answers: number, correct: number])[],
): Promise<void> {
  const values = groups.flatMap(([at, count, correct], i) =>
    Array.from({ length: count }, (_, n) => ({
      ...{ tenant: 'default', ...learner, skill_id: `skill-${n % 3}`, is_correct: n < correct ? 1 : 0 },
      ...{ occurred_at: sqlTime(at), received_at: sqlTime(at), learner_seq: 1000 * i + n + 1 },
      // Outcomes count each answer once.
      further_skills: n % 2 === 0 ? [] : [{ skill_id: 'further' }],
    })),
  );
  await client.insert({ table: 'attempts', format: 'JSONEachRow', values });
}

const { clickhouseUrl, analystUrl } = await freshDatabase();
const { client } = await testDatabase({ after }, clickhouseUrl);
const analyst = connectWarehouse(analystUrl);
after(() => analyst.close());
const select = <R>(query: string) => selectRows<R>(analyst, query);

test('forecast_outcomes scores the last forecast of a day, and forecast_coverage averages the scores', async () => {
  const madeAt = Date.UTC(2026, 0, 10, 15);
  const { accuracy } = servedForecast();
  await storeForecasts(client, [
    // Two earlier forecasts of the same day, which do not count.
    { userId: 'a', madeAt: madeAt - 3, accuracy: { ...accuracy, expected: 0.1 } },
    { userId: 'a', madeAt: madeAt - 2, level: 0.95, accuracy: { ...accuracy, expected: 0.2 } },
    { userId: 'a', madeAt, learnerSeq: 19, accuracy: { ...accuracy, factors: { below: 2, above: 1 } } },
    { userId: 'b', madeAt, learnerSeq: 1, accuracy: { ...accuracy, expected: 0.9, sd: 0.05 } },
    { userId: 'nine answers', madeAt },
    { userId: 'no answers', madeAt },
    { userId: 'a', madeAt: Date.now() },
    { tenant: 'other', userId: 'a', madeAt },
  ]);
  const earlierRow = encodeForecastRow(
    servedForecast({
      ...{ userId: 'c', madeAt, learnerSeq: 500, accuracy: { ...accuracy, expected: 0.5, sd: 0 } },
    }),
  );
  const earlierFields = earlierRow.split('\t').slice(0, journalColumns.forecast.length);
  await createJournalWarehouse(client).insert('forecast', [Buffer.from(earlierFields.join('\t'))]);
  const endOf = (day: number): number => Date.UTC(2026, 0, 10 + day, 23, 59, 59, 999);
  // Only the second and third group are within the seven days after the forecast.
  await insertAnswers(client, { user_id: 'a' }, [
    [endOf(0), 50, 50],
    [endOf(0) + 1, 8, 6],
    [endOf(7), 8, 4],
    [endOf(7) + 1, 30, 0],
  ]);
  await insertAnswers(client, { user_id: 'b' }, [[endOf(2), 10, 2]]);
  await insertAnswers(client, { user_id: 'c' }, [[endOf(3), 25, 17]]);
  await insertAnswers(client, { user_id: 'nine answers' }, [[endOf(3), 9, 5]]);
  assert.deepEqual(
    await select(
      `SELECT user_id, history, toUInt32(answers) AS answers, toUInt32(correct) AS correct, observed_share,
       round(z, 6) AS z, covered_50, covered_80, covered_95, round(interval_width_50, 6) AS width_50,
       round(interval_width_80, 6) AS width_80, round(interval_width_95, 6) AS width_95,
       round(position, 6) AS position, uncalibrated_covered_50 AS uncalibrated_50,
       uncalibrated_covered_80 AS uncalibrated_80, uncalibrated_covered_95 AS uncalibrated_95,
       round(uncalibrated_interval_width_80, 6) AS uncalibrated_width,
       round(squared_error, 6) AS squared_error, round(brier, 6) AS brier
     FROM forecast_outcomes WHERE toString(made_day) = '2026-01-10' AND forecast_days = 7 ORDER BY user_id`,
    ),
    outcomes,
  );
  assert.deepEqual(
    await select(
      `SELECT tenant, forecast_days, history_from, history_to, toUInt32(cases) AS cases,
       toUInt32(learners) AS learners, toUInt32(answers) AS answers, coverage_50, coverage_80, coverage_95,
       round(mean_width_80, 6) AS mean_width_80, uncalibrated_coverage_50, uncalibrated_coverage_80,
       uncalibrated_coverage_95, round(uncalibrated_mean_width_80, 6) AS uncalibrated_mean_width_80,
       round(expected_share, 6) AS expected_share,
       round(observed_share, 6) AS observed_share, round(brier, 6) AS brier
     FROM forecast_coverage ORDER BY history_from`,
    ),
    coverage,
  );
});

test('forecast_outcomes leaves out horizons that have not ended', async () => {
  const today = Math.floor(Date.now() / dayMs) * dayMs;
  const noons = Array.from({ length: 12 }, (_, i) => today - i * dayMs + dayMs / 2);
  await storeForecasts(
    client,
    noons.map((at) => ({ tenant: 'now', userId: 'd', madeAt: at })),
  );
  const groups = noons.map((at) => [at, 10, 5] as const);
  await insertAnswers(client, { tenant: 'now', user_id: 'd' }, groups);
  const [row] = await select<{ scored: number; ended: number }>(
    `SELECT toUInt32(count()) AS scored, (SELECT toUInt32(count()) FROM forecasts
       WHERE tenant = 'now' AND toDate(made_at) + 7 < toDate(now('UTC'))) AS ended
     FROM forecast_outcomes WHERE tenant = 'now'`,
  );
  assert.equal(row?.scored, row?.ended);
  assert.ok(row && row.ended >= 4 && row.ended <= 5, `${row?.ended} horizons have ended`);
});
