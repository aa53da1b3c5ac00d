/** Recalibration of the intervals of forecasts, from stored outcomes to the next forecast. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createFitDependencies } from '../../src/app/processes/consumers.js';
import { encodeForecastRow, type ServedForecast } from '../../src/contracts/journal/journal.js';
import { dayMs } from '../../src/domain/base/common.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { calibrateTenants } from '../../src/services/models/calibrate-tenants.js';
import { calibrationKey } from '../../src/store/redis/keys.js';
import { selectNumber, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { timeAgo } from '../support/builders/day.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { callerOf, event } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, await keys.add({ tenant: 'calibrated' }));
const tenant = keys.nameOf('calibrated');
const path = '/api/v1/model/coverage';
const now = Date.now();

function calibrate(at = now, signal = new AbortController().signal): Promise<void> {
  const { redisUrl, clickhouseUrl } = service;
  const endpoints = { redisUrl, clickhouseUrl, analystUrl: null, clickhouseCluster: null };
  const options = { threads: 1, servesRequests: false };
  const parts = createFitDependencies(
    { redis, clickhouse },
    endpoints,
    options,
    createLogger('fatal', 'test'),
  );
  return calibrateTenants(parts, at, signal, [tenant]);
}

const learners = indices(22).map((i) => `learner-${i}`);
const answersPerLearner = 20;
const { accuracy } = servedForecast();
/** Reaches after a recalibration by factors of 3. */
const widened = {
  ...accuracy,
  reach: accuracy.reach.map(({ below, above }) => ({ below: 3 * below, above: 3 * above })),
  factors: { below: 3, above: 3 },
};

/** Ten days with a forecast of 30 days. The answers follow 21 days ago. */
const forecastsOf = (userId: string): ServedForecast[] =>
  indices(10).map((day) =>
    servedForecast({
      ...{ tenant, userId, madeAt: now - (45 - day) * dayMs, days: 30, learnerSeq: 25 },
      accuracy: day < 5 ? accuracy : widened,
    }),
  );

/** All correct for every second learner, else 8 of 20. */
const answersOf = (userId: string, learner: number) =>
  indices(answersPerLearner).map((i) =>
    event({ user_id: userId, is_correct: learner % 2 === 0 || i % 5 < 2, occurred_at: timeAgo(21) }),
  );

async function fetchAccuracy(): Promise<{
  readonly share: number;
  readonly low: number;
  readonly high: number;
}> {
  const { status, json } = await caller.get('/api/v1/predictions/learner-1?days=30');
  assert.equal(status, 200);
  return json.data.expected_accuracy;
}

test('Outcomes of earlier forecasts recalibrate the intervals of later ones', async (t) => {
  const rows = learners.flatMap(forecastsOf).map((row) => Buffer.from(encodeForecastRow(row)));
  await createJournalWarehouse(clickhouse).insert('forecast_2', rows);
  assert.equal((await caller.trackAll(learners.flatMap(answersOf))).status, 200);
  const before = await askUntil(
    'all outcomes',
    async () => (await caller.get(path)).json.data,
    ({ bands }) => bands[0]?.cases === rows.length,
  );
  const served = await fetchAccuracy();

  await t.test('the API returns coverage with and without the factors that were applied', () => {
    const [band, ...others] = before.bands;
    assert.deepEqual(others, []);
    assert.deepEqual([band.coverage_80, band.uncalibrated_coverage_80], [0.5, 0]);
    assert.ok(band.uncalibrated_mean_width_80 < 0.7 * band.mean_width_80);
    const reason = 'The next daily run recalibrates the intervals. Known outcomes: 220, of 22 learners.';
    assert.deepEqual([before.calibration, before.calibration_reason], [null, reason]);
  });

  await t.test('an aborted run changes nothing', async () => {
    await assert.rejects(calibrate(now, AbortSignal.abort()), { name: 'AbortError' });
    assert.equal(await redis.exists(calibrationKey(tenant)), 0);
  });

  await t.test('a run widens the intervals of forecasts, and a row stores the factors', async () => {
    await calibrate();
    const wider = await askUntil(
      'a wider interval',
      fetchAccuracy,
      ({ low, high }) => high - low > served.high - served.low + 0.02,
    );
    assert.equal(wider.share, served.share);
    const { calibration, calibration_reason } = (await caller.get(path)).json.data;
    const calibrated_at = new Date(now).toISOString();
    assert.deepEqual(calibration, { calibrated_at, outcomes: rows.length, learners: learners.length });
    assert.equal(calibration_reason, null);
    const [row] = await askUntil(
      'the stored forecast',
      () =>
        selectRows<{ below: number; above: number }>(
          clickhouse,
          `SELECT calibration_below AS below, calibration_above AS above FROM forecasts
           WHERE tenant = {tenant:String} AND made_at >= fromUnixTimestamp64Milli({now:Int64}) AND calibration_below != 1`,
          { params: { tenant, now } },
        ),
      (found) => found.length > 0,
    );
    assert.ok(row && row.below > 1 && row.above > 1, JSON.stringify(row));
  });

  await t.test('a repeated run stores the same calibration, also after its loss', async () => {
    const stored = await redis.getdel(calibrationKey(tenant));
    assert.ok(stored);
    for (const _ of [1, 2]) {
      await calibrate();
      assert.equal(await redis.get(calibrationKey(tenant)), stored);
    }
  });

  await t.test('outcomes of default intervals do not recalibrate fitted intervals', async () => {
    const fitted = servedForecast({
      tenant,
      madeAt: Date.now() + dayMs,
      accuracy: { ...accuracy, cases: 500 },
    });
    await createJournalWarehouse(clickhouse).insert('forecast_2', [Buffer.from(encodeForecastRow(fitted))]);
    await calibrate();
    const { calibration, calibration_reason } = (await caller.get(path)).json.data;
    assert.equal(calibration, null);
    assert.match(calibration_reason, /^Too few outcomes: 0 of 200, from 0 of 20 learners\./);
    await askUntil('the previous interval', fetchAccuracy, ({ high }) => high === served.high);
    const last = { tenant, madeAt: Date.now() + 2 * dayMs };
    await createJournalWarehouse(clickhouse).insert('forecast_2', [
      Buffer.from(encodeForecastRow(servedForecast(last))),
    ]);
    await calibrate();
    assert.equal(await redis.exists(calibrationKey(tenant)), 1);
  });

  await t.test('a run without recent outcomes removes the calibration', async () => {
    await calibrate(now + 200 * dayMs);
    const { calibration } = (await caller.get(path)).json.data;
    assert.equal(calibration, null);
    await askUntil('the previous interval', fetchAccuracy, ({ high }) => high === served.high);
    const query = 'SELECT count() FROM forecasts WHERE tenant = {tenant:String}';
    assert.ok((await selectNumber(clickhouse, query, { params: { tenant } })) > rows.length);
  });
});
