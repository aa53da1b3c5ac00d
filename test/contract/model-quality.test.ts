/** Reliability of predictions and coverage of forecasts. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { encodeForecastRow } from '../../src/contracts/journal/journal.js';
import { dayMs } from '../../src/domain/base/common.js';
import { indices } from '../../src/lists.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { timeAgo } from '../support/builders/day.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { callerOf, event } from '../support/http/http.js';
import { clickhouseOf, keysOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const callerOfTenant = async (name: string) => callerOf(service, await keys.add({ tenant: name }));
const path = '/api/v1/model/reliability';

interface PredictedAnswer {
  readonly p: number;
  readonly right: number;
}

/** Rounded to four decimals. */
function assertMean(
  actual: number,
  rows: readonly PredictedAnswer[],
  select: (row: PredictedAnswer) => number,
): void {
  const expected = rows.reduce((sum, row) => sum + select(row), 0) / rows.length;
  assert.ok(Math.abs(actual - expected) <= 0.5001e-4, `${select}: ${actual}, not ${expected}`);
}

const selectP = ({ p }: PredictedAnswer): number => p;
const selectRight = ({ right }: PredictedAnswer): number => right;

test('GET model/reliability compares predictions and answers of the period in bins', async () => {
  const caller = await callerOfTenant('quality');
  // 20 learners of different ability: 320 answers on algebra, 80 on geometry, and one answer each of 40 days ago.
  const answers = indices(400).map((n) => {
    const [learner, i] = [Math.floor(n / 20), n % 20];
    const is_correct = (i * 7 + learner * 3) % 20 >= learner;
    const skill_id = i % 5 === 4 ? 'geometry' : 'algebra';
    return event({ user_id: `quality-${learner}`, skill_id, is_correct, occurred_at: timeAgo(2 - i / 20) });
  });
  const old = indices(20).map((i) =>
    event({ user_id: `quality-${i}`, is_correct: false, occurred_at: timeAgo(40) }),
  );
  assert.equal((await caller.trackAll(old)).status, 200);
  assert.equal((await caller.trackAll(answers)).status, 200);
  const data = await askUntil(
    'all answers',
    async () => (await caller.get(`${path}?days=28`)).json.data,
    (data) => data.answers === answers.length,
  );
  const rows = await selectRows<PredictedAnswer>(
    clickhouse,
    `SELECT p_correct AS p, is_correct AS right FROM attempts
     WHERE tenant = {tenant:String} AND occurred_at > now() - INTERVAL 28 DAY`,
    { params: { tenant: keys.nameOf('quality') } },
  );
  assert.equal(
    rows.filter(({ right }) => right === 1).length,
    answers.filter((one) => one.is_correct).length,
  );
  assertMean(data.accuracy, rows, selectRight);
  assertMean(data.mean_p_correct, rows, selectP);
  assertMean(data.brier, rows, ({ p, right }) => (p - right) ** 2);
  assertMean(data.log_loss, rows, ({ p, right }) => -Math.log(right === 1 ? p : 1 - p));
  assert.ok(data.bins.length >= 3, 'answers are in several bins');
  let inBins = 0;
  for (const bin of data.bins) {
    const own = rows.filter(({ p }) => p >= bin.from && p < bin.to);
    assert.equal(bin.answers, own.length, `bin from ${bin.from}`);
    assertMean(bin.p_correct, own, selectP);
    assertMean(bin.accuracy, own, selectRight);
    assert.ok(bin.low < bin.high && bin.low <= bin.accuracy && bin.accuracy <= bin.high);
    inBins += bin.answers;
  }
  assert.equal(inBins, rows.length);

  const longer = (await caller.get(`${path}?days=60`)).json.data;
  assert.deepEqual([longer.days, longer.answers], [60, answers.length + old.length]);
  const geometry = (await caller.get(`${path}?skill_id=geometry`)).json.data;
  assert.deepEqual([geometry.answers, geometry.skill_id], [80, 'geometry']);
});

test('GET model/reliability returns null values for a tenant without answers and rejects invalid days', async () => {
  const caller = await callerOfTenant('unanswered');
  const { source_lag_seconds: _, ...data } = (await caller.get(path)).json.data;
  assert.deepEqual(data, {
    ...{ days: 28, skill_id: null, answers: 0, accuracy: null, mean_p_correct: null },
    ...{ log_loss: null, brier: null, bins: [] },
  });
  assert.deepEqual((await caller.get('/api/v1/model/coverage')).json.data, {
    bands: [],
    calibration: null,
    calibration_reason:
      'Too few outcomes: 0 of 200, from 0 of 20 learners. An outcome is a forecast with a past horizon and at least 10 answers.',
  });
  for (const days of ['0', '366', 'x'])
    assert.equal((await caller.get(`${path}?days=${days}`)).status, 400, days);
});

test('GET model/coverage returns the bands of forecast_coverage of its tenant', async () => {
  const caller = await callerOfTenant('covered');
  // Made 8 days ago, for the 7 days up to yesterday.
  const forecasts = ['covered', 'covered-too'].map((name) =>
    servedForecast({
      ...{ tenant: keys.nameOf(name), userId: 'a', madeAt: Date.now() - 8 * dayMs, learnerSeq: 25 },
    }),
  );
  await createJournalWarehouse(clickhouse).insert(
    'forecast_2',
    forecasts.map((forecast) => Buffer.from(encodeForecastRow(forecast))),
  );
  const answers = indices(10).map((i) => event({ user_id: 'a', is_correct: i < 7, occurred_at: timeAgo(4) }));
  assert.equal((await caller.trackAll(answers)).status, 200);
  const { bands, calibration, calibration_reason } = await askUntil(
    'a band',
    async () => (await caller.get('/api/v1/model/coverage')).json.data,
    (data) => data.bands.length > 0,
  );
  const [{ mean_width_50: narrow, mean_width_80: middle, mean_width_95: wide, ...band }, ...others] = bands;
  assert.deepEqual(others, []);
  assert.equal(calibration, null);
  assert.match(calibration_reason, /^Too few outcomes: 1 of 200, from 1 of 20 learners\./);
  assert.ok(0 < narrow && narrow < middle && middle < wide && wide < 1);
  assert.deepEqual(band, {
    ...{ forecast_days: 7, history_from: 20, history_to: 49, cases: 1, learners: 1, answers: 10 },
    ...{ coverage_50: 1, coverage_80: 1, coverage_95: 1 },
    ...{ uncalibrated_coverage_50: 1, uncalibrated_coverage_80: 1, uncalibrated_coverage_95: 1 },
    uncalibrated_mean_width_80: middle,
    ...{ expected_share: 0.7, observed_share: 0.7, mean_squared_error: 0, brier: 0.21 },
  });
  const path = '/api/v1/model/coverage?days=1';
  assert.deepEqual((await caller.get(path)).json.data.bands, bands, 'ended yesterday');
});

test('GET model/coverage with days leaves out forecasts that ended earlier', async () => {
  const caller = await callerOfTenant('ended');
  // Ended 3 days ago.
  const forecast = servedForecast({
    ...{ tenant: keys.nameOf('ended'), userId: 'a', madeAt: Date.now() - 10 * dayMs, learnerSeq: 25 },
  });
  await createJournalWarehouse(clickhouse).insert('forecast_2', [Buffer.from(encodeForecastRow(forecast))]);
  const answers = indices(10).map(() => event({ user_id: 'a', occurred_at: timeAgo(5) }));
  assert.equal((await caller.trackAll(answers)).status, 200);
  const countBands = async (days: number): Promise<number> =>
    (await caller.get(`/api/v1/model/coverage?days=${days}`)).json.data.bands.length;
  await askUntil(
    'a band',
    () => countBands(3),
    (count) => count === 1,
  );
  assert.equal(await countBands(2), 0);
  assert.equal((await caller.get('/api/v1/model/coverage?days=0')).status, 400);
});
