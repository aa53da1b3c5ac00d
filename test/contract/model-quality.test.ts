/** How good predictions are: compared with the rows of the answers that were posted, and with what a view has. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { encodeForecastRow } from '../../src/contracts/journal/journal.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { callerOf, event } from '../support/http/http.js';
import {
  clickhouseOf,
  clickhousePid,
  keysOf,
  sharedService,
  startServiceAlone,
} from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const dayMs = 86_400_000;
const daysAgo = (days: number): string => new Date(Date.now() - days * dayMs).toISOString();

const callerOfTenant = async (name: string) => callerOf(service, await keys.add({ tenant: name }));
const path = '/api/v1/model/reliability';

/** Half of a unit in the last of four decimals. */
const assertNear = (actual: number, expected: number, what: string): void =>
  assert.ok(Math.abs(actual - expected) <= 0.5001e-4, `${what}: ${actual}, not ${expected}`);

/** Answers of 20 learners who know more or less: 320 on algebra and 80 on geometry, and one of 40 days ago each. */
const posted = Array.from({ length: 20 }, (_, learner) =>
  Array.from({ length: 20 }, (_, i) =>
    event({
      user_id: `quality-${learner}`,
      skill_id: i % 5 === 4 ? 'geometry' : 'algebra',
      is_correct: (i * 7 + learner * 3) % 20 >= learner,
      occurred_at: daysAgo(2 - i / 20),
    }),
  ),
).flat();
const old = Array.from({ length: 20 }, (_, learner) =>
  event({ user_id: `quality-${learner}`, is_correct: false, occurred_at: daysAgo(40) }),
);

test('reliability is that of the answers that were posted, bin by bin', async () => {
  const caller = await callerOfTenant('quality');
  assert.equal((await caller.trackAll(old)).status, 200);
  assert.equal((await caller.trackAll(posted)).status, 200);
  const data = await askUntil(
    'all answers',
    async () => (await caller.get(`${path}?days=28`)).json.data,
    ({ answers }) => answers === posted.length,
  );
  const rows = await selectRows<{ p: number; right: number; skill: string }>(
    clickhouse,
    `SELECT p_correct AS p, is_correct AS right, skill_id AS skill FROM attempts
     WHERE tenant = {tenant:String} AND occurred_at > now() - INTERVAL 28 DAY`,
    { params: { tenant: keys.nameOf('quality') } },
  );
  assert.equal(rows.filter(({ right }) => right === 1).length, posted.filter((one) => one.is_correct).length);
  const mean = (of: (row: (typeof rows)[number]) => number, among = rows): number =>
    among.reduce((sum, row) => sum + of(row), 0) / among.length;
  assertNear(
    data.accuracy,
    mean(({ right }) => right),
    'accuracy',
  );
  assertNear(
    data.mean_p_correct,
    mean(({ p }) => p),
    'mean_p_correct',
  );
  assertNear(
    data.brier,
    mean(({ p, right }) => (p - right) ** 2),
    'brier',
  );
  assertNear(
    data.log_loss,
    mean(({ p, right }) => -Math.log(right === 1 ? p : 1 - p)),
    'log_loss',
  );
  assert.ok(data.bins.length >= 3, 'spread over several bins');
  for (const bin of data.bins) {
    const own = rows.filter(({ p }) => p >= bin.from && p < bin.to);
    assert.equal(bin.answers, own.length, `bin from ${bin.from}`);
    assertNear(
      bin.p_correct,
      mean(({ p }) => p, own),
      'p_correct',
    );
    assertNear(
      bin.accuracy,
      mean(({ right }) => right, own),
      'accuracy',
    );
    assert.ok(bin.low < bin.high && bin.low <= bin.accuracy && bin.accuracy <= bin.high);
  }
  assert.equal(
    data.bins.reduce((sum: number, { answers }: { answers: number }) => sum + answers, 0),
    rows.length,
  );

  const longer = (await caller.get(`${path}?days=60`)).json.data;
  assert.deepEqual([longer.days, longer.answers], [60, posted.length + old.length]);
  const { answers, skill_id } = (await caller.get(`${path}?skill_id=geometry`)).json.data;
  assert.deepEqual([answers, skill_id], [80, 'geometry']);
});

test('a tenant without answers has no figures, and days have bounds', async () => {
  const caller = await callerOfTenant('unanswered');
  const { json } = await caller.get(path);
  assert.deepEqual(json.data, {
    ...{
      days: 28,
      skill_id: null,
      answers: 0,
      accuracy: null,
      mean_p_correct: null,
      log_loss: null,
      brier: null,
    },
    ...{ bins: [], source_lag_seconds: json.data.source_lag_seconds },
  });
  assert.deepEqual((await caller.get('/api/v1/model/coverage')).json.data, { bands: [] });
  for (const days of ['0', '366', 'x'])
    assert.equal((await caller.get(`${path}?days=${days}`)).status, 400, days);
});

test('coverage is what the view has of the tenant', async () => {
  const caller = await callerOfTenant('covered');
  // Of 8 days ago about the 7 days up to yesterday.
  const forecasts = ['covered', 'covered-too'].map((name) => ({
    ...{ tenant: keys.nameOf(name), userId: 'a', madeAt: Date.now() - 8 * dayMs, learnerSeq: 25 },
  }));
  await createJournalWarehouse(clickhouse).insert(
    'forecast',
    forecasts.map((one) => Buffer.from(encodeForecastRow(servedForecast(one)))),
  );
  const answers = Array.from({ length: 10 }, (_, i) =>
    event({ user_id: 'a', is_correct: i < 7, occurred_at: daysAgo(4) }),
  );
  assert.equal((await caller.trackAll(answers)).status, 200);
  const { bands } = await askUntil(
    'a band',
    async () => (await caller.get('/api/v1/model/coverage')).json.data,
    (data) => data.bands.length > 0,
  );
  const [{ mean_width_50: _, mean_width_80: width, mean_width_95: __, ...band }] = bands;
  assert.deepEqual(bands.length, 1);
  assert.ok(width > 0 && width < 1);
  assert.deepEqual(band, {
    ...{ forecast_days: 7, history_from: 20, history_to: 49, cases: 1, learners: 1, answers: 10 },
    ...{ coverage_50: 1, coverage_80: 1, coverage_95: 1 },
    ...{ expected_share: 0.7, observed_share: 0.7, mean_squared_error: 0, brier: 0.21 },
  });
});

test('without ClickHouse both are unavailable', async (t) => {
  const alone = await startServiceAlone(t);
  const caller = callerOf(alone, alone.key);
  const pid = clickhousePid(alone);
  process.kill(pid, 'SIGSTOP');
  const ask = (one: string) => caller.get(one);
  const answers = await Promise.all([path, '/api/v1/model/coverage'].map(ask)).finally(() =>
    process.kill(pid, 'SIGCONT'),
  );
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers['retry-after']]),
    [
      [503, '1'],
      [503, '1'],
    ],
  );
});
