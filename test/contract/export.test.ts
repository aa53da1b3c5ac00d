/** The export of a learner: complete from Redis and ClickHouse, or visibly incomplete. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  encodeForecastRow,
  encodeGoalRow,
  encodeRetractionRow,
} from '../../src/contracts/journal/journal.js';
import { indices } from '../../src/lists.js';
import { forecastsKey, journalKey, outboxKey, parkedKey, partitionOf } from '../../src/store/redis/keys.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { formatExportSource, learnerTables } from '../../src/warehouse/schema/learner-tables.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { callerOf, event } from '../support/http/http.js';
import { countOf } from '../support/inspect/warehouse.js';
import { clickhouseOf, redisOf, sharedService, startService } from '../support/servers/service.js';
import { emptied, waitFor } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const { tenant } = service;

type Line = Record<string, unknown> & { type: string };

async function exportLines(userId: string): Promise<Line[]> {
  const path = `/api/v1/learners/${encodeURIComponent(userId)}/export`;
  const { status, headers, text } = await caller.raw({ method: 'GET', path });
  assert.deepEqual([status, headers['content-type']], [200, 'application/x-ndjson'], text);
  assert.ok(text.endsWith('\n'));
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const ofType = (lines: readonly Line[], type: string): Line[] => lines.filter((line) => line.type === type);
const user = "zoë \\ o'hara";

test('GET /learners/{user_id}/export returns all records of the learner and only these', async () => {
  assert.equal((await caller.track(event({ user_id: "zoë \\ o'har", skill_id: 'other' }))).status, 200);
  const events = indices(30).map((i) =>
    event({ user_id: user, skill_id: `s${i % 3}`, item_id: `item-${i % 4}`, event_id: `e-${i}` }),
  );
  const id = encodeURIComponent(user);
  const responses = [
    await caller.trackAll(events),
    await caller.send('PUT', `/api/v1/goals/${id}`, { target_score: 1200 }),
    await caller.get(`/api/v1/predictions/${id}`),
  ];
  for (const { status, text } of responses) assert.equal(status, 200, text);
  const lines = await exportLines(user);
  const [meta, end] = [lines.at(0), lines.at(-1)];
  assert.deepEqual([meta?.type, meta?.tenant, meta?.user_id, meta?.answers], ['meta', tenant, user, 30]);
  assert.deepEqual(end, { type: 'end', complete: true, lines: lines.length, answers: 30, missing: 0 });
  const seqs = ofType(lines, 'attempt').map((line) => Number(line.learner_seq) - 1);
  assert.deepEqual(
    seqs.toSorted((a, b) => a - b),
    indices(30),
  );
  const { json } = await caller.get(`/api/v1/mastery/${id}`);
  assert.deepEqual(
    new Map(ofType(lines, 'skill').map((line) => [line.skill_id, line.last_attempt_at])),
    new Map(json.data.skills.map((skill: Line) => [skill.skill_id, skill.last_attempt_at])),
  );
  assert.deepEqual([ofType(lines, 'skill').length, ofType(lines, 'item').length], [3, 4]);
  assert.deepEqual([ofType(lines, 'learner').length, ofType(lines, 'goal').length], [1, 1]);
  assert.equal(ofType(lines, 'event_id').length, 30);
  assert.ok(lines.every((line) => line.skill_id !== 'other'));
});

test('GET /learners/{user_id}/export uses the field names of format 1 for records of states', async () => {
  const lines = await exportLines(user);
  const fields = {
    learner:
      'abilities ability_version activity attempts baseline_total items momentum time_zone trace trend type version',
    'learner.trace': 'ability course last_right_at recent right slow variance wrong wrong_run',
    'learner.trace.course':
      'answers first_ability first_form first_skill first_tries forms item_before last_item retries retry_ability retry_form second_skill skills',
    'learner.activity': 'day halves',
    skill:
      'attempts calibration correct correct_days last_attempt_at last_correct_day mastery pace plateau rapid reached ready skill_id trace type',
    'skill.trace': 'last_place last_right_at last_right_place residual streak',
    item: 'at elsewhere item_hash last_wrong right type wrong wrong_run',
  };
  for (const [name, expected] of Object.entries(fields)) {
    const [type = '', ...path] = name.split('.');
    const record = path.reduce((value, key) => value[key] as Line, ofType(lines, type)[0] as Line);
    assert.equal(Object.keys(record).sort().join(' '), expected, name);
  }
});

test('GET /learners/{user_id}/export returns the rows of every table once they are stored', async () => {
  const partition = partitionOf(tenant, user, 16);
  const ofTenant = `tenant = '${tenant}'`;
  for (const table of ['goal_changes', 'served_forecasts'])
    await waitFor(table, async () => (await countOf(clickhouse, `${table} WHERE ${ofTenant}`)) === 1);
  // A row can be in Redis and ClickHouse for a moment, and is exported twice then.
  for (const keyOf of [outboxKey, journalKey, forecastsKey]) await emptied(redis, keyOf(partition));
  const lines = await exportLines(user);
  for (const of of learnerTables) {
    const source = `${formatExportSource(of)} WHERE ${ofTenant} AND user_id = 'zoë \\\\ o\\'hara'`;
    const rows = await countOf(clickhouse, source);
    assert.equal(ofType(lines, of.rowType).length, rows, of.rowType);
  }
  const stored = ofType(lines, 'attempt')[0] as Line;
  const { place, user_id, event_id, p_init } = stored;
  assert.deepEqual([place, user_id, event_id, p_init], ['clickhouse', user, 'e-0', 0.3]);
  const [ownDay] = ofType(lines, 'skill_day');
  assert.deepEqual([typeof ownDay?.last_mastery, typeof ownDay?.accuracy], ['number', 'number']);
  const columns = learnerTables.find(({ rowType }) => rowType === 'attempt')?.table.columns ?? [];
  const missing = columns.map(({ name }) => name).filter((name) => !(name in stored));
  const derived = ['masteries_after', 'masteries_before', 'mastery_chance', 'skill_ids'];
  assert.deepEqual(new Set(missing), new Set([...derived, 'outbox_ms', 'outbox_seq', 'partition_id']));
});

test('GET /learners/{user_id}/export returns the goals of a learner without answers', async () => {
  const path = '/api/v1/goals/goal%20alone';
  assert.equal((await caller.send('PUT', path, { target_score: 1300 })).status, 200);
  const lines = await exportLines('goal alone');
  const [goal] = ofType(lines, 'goal');
  assert.equal(goal?.target_score, 1300);
  assert.equal(goal?.updated_at, (await caller.get(path)).json.data.updated_at);
  assert.deepEqual(ofType(lines, 'learner'), []);
  const end = { type: 'end', complete: true, lines: lines.length, answers: 0, missing: 0 };
  assert.deepEqual(lines.at(-1), end);
  assert.equal((await caller.send('DELETE', path)).status, 200);
  const after = await exportLines('goal alone');
  const scores = new Set(ofType(after, 'goal_change').map(({ target_score }) => target_score));
  assert.deepEqual([...scores].sort(), [1300, null]);
  assert.deepEqual(ofType(after, 'goal'), []);
});

test('GET /learners/{user_id}/export formats parked and stored rows in the same way', async () => {
  const learner = { tenant, userId: "in two places \\ o'hara" };
  const partition = partitionOf(learner.tenant, learner.userId, 16);
  const answer = {
    eventId: 'e\\1',
    skillId: 's',
    learnerSeq: 3,
    receivedAt: 1_780_000_000_123,
    firstAnswer: '',
  };
  const rows = {
    goal: `1780000000456\t${encodeGoalRow({ ...learner, targetScore: 1200, targetDate: '2027-06-05' })}`,
    taken_back: `1780000000789\t${encodeRetractionRow({ ...learner, ...answer })}`,
    forecast_2: encodeForecastRow(servedForecast({ ...learner, targetScore: null, goalProbability: null })),
  };
  assert.equal((await caller.track(event({ user_id: learner.userId }))).status, 200);
  for (const [kind, row] of Object.entries(rows) as [keyof typeof rows, string][]) {
    const key = parkedKey(kind === 'forecast_2' ? forecastsKey(0) : journalKey(partition));
    await createJournalWarehouse(clickhouse).insert(kind, [Buffer.from(row)]);
    await redis.xadd(key, '*', 'k', kind, 'r', row, 'id', '1-1', 'reason', 'a test');
  }
  const lines = await exportLines(learner.userId);
  for (const type of ['goal_change', 'taken_back', 'served_forecast']) {
    const [parked, stored, ...others] = ofType(lines, type);
    assert.deepEqual(others, []);
    assert.deepEqual(parked, { ...stored, place: 'parked' });
    const time = type === 'goal_change' ? parked?.updated_at : (parked?.taken_back_at ?? parked?.made_at);
    assert.match(`${time}`, /^2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  await redis.del(parkedKey(journalKey(partition)), parkedKey(forecastsKey(0)));
});

test('HEAD /learners/{user_id}/export returns the headers, and GET returns 404 for an unknown learner', async () => {
  assert.equal((await caller.get('/api/v1/learners/unknown/export')).status, 404);
  for (let i = 0; i < 3; i++) {
    const { status, headers } = await caller.head(`/api/v1/learners/${encodeURIComponent(user)}/export`);
    assert.deepEqual([status, headers['content-type']], [200, 'application/x-ndjson']);
  }
});

test('GET /learners/{user_id}/export closes the connection without an end line if ClickHouse fails', async () => {
  const { dataDir } = service;
  const without = { dataDir, role: 'api', clickhouseUrl: 'http://127.0.0.1:1/nothing' } as const;
  const alone = await startService({ after }, without);
  const path = `/api/v1/learners/${encodeURIComponent(user)}/export`;
  for (let i = 0; i < 3; i++) {
    const broken = callerOf(alone, service.key).raw({ method: 'GET', path });
    await assert.rejects(broken, /the connection closed; so far: HTTP\/1.1 200 OK(?!.*"complete":true)/s);
  }
});
