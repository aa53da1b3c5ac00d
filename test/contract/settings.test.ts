/** The time zone of a tenant: setting it, and days that the API shows. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { indices } from '../../src/lists.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { type Caller, callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { clickhouseOf, keysOf, sharedService } from '../support/servers/service.js';
import { askUntil, waitUntilStored } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const path = '/api/v1/settings';

const callerOfTenant = async (tenant: string): Promise<Caller> =>
  callerOf(service, await keys.add({ tenant }));
const put = (caller: Caller, time_zone: unknown): Promise<JsonAnswer> =>
  caller.send('PUT', path, { time_zone });
const zoneOf = async (caller: Caller): Promise<string> => (await caller.get(path)).json.data.time_zone;
const dayIn = (timeZone: string, ms = Date.now()): string =>
  new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' }).format(ms);

/** A zone that has another day than UTC now, and for at least another hour. */
const [elsewhere, offset] =
  new Date().getUTCHours() < 11
    ? (['Etc/GMT+12', '-12:00'] as const)
    : (['Pacific/Kiritimati', '+14:00'] as const);

test('GET settings returns UTC at first; PUT sets the zone, which GET key returns too', async () => {
  const caller = await callerOfTenant('first');
  const { status, json } = await caller.get(path);
  assert.deepEqual(
    [status, json.data],
    [200, { time_zone: 'UTC', today: dayIn('UTC'), time_zone_change: null }],
  );
  assert.equal((await caller.get('/api/v1/key')).json.data.time_zone, 'UTC');

  const set = await put(caller, elsewhere);
  const { requested_at, ...change } = set.json.data.time_zone_change;
  assert.deepEqual([set.status, set.json.message], [202, 'Settings saved']);
  assert.deepEqual(change, { status: 'running', done_at: null, learners: 0 });
  assert.ok(Math.abs(Date.parse(requested_at) - Date.now()) < 60_000);
  assert.deepEqual([set.json.data.time_zone, set.json.data.today], [elsewhere, dayIn(elsewhere)]);
  assert.deepEqual((await caller.get(path)).json.data, set.json.data);
  assert.equal((await caller.get('/api/v1/key')).json.data.time_zone, elsewhere);
  const [entry] = (await caller.get('/api/v1/activity?limit=1')).json.data.entries;
  assert.equal(entry.action, 'settings.saved');
});

test('the same zone again starts no change, and each other zone starts one', async () => {
  const caller = await callerOfTenant('same');
  assert.equal((await put(caller, 'UTC')).json.data.time_zone_change, null);
  const first = (await put(caller, 'Asia/Kathmandu')).json.data.time_zone_change.requested_at;
  assert.equal((await put(caller, 'asia/kathmandu')).json.data.time_zone_change.requested_at, first);
  const next = (await put(caller, 'Asia/Katmandu')).json.data.time_zone_change.requested_at;
  const back = (await put(caller, 'Asia/Kathmandu')).json.data.time_zone_change.requested_at;
  assert.ok(first < next && next < back, `${first}, ${next}, ${back}`);
  assert.equal(await zoneOf(await callerOfTenant('other')), 'UTC');
});

test('zones set at the same time get different times, and ClickHouse has the last one', async () => {
  const caller = await callerOfTenant('concurrent');
  const names = Intl.supportedValuesOf('timeZone').slice(0, 20);
  const responses = await Promise.all(names.map((name) => put(caller, name)));
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([202]));
  const times = responses.map(({ json }) => json.data.time_zone_change.requested_at);
  assert.equal(new Set(times).size, names.length);
  const stored = await selectRows(
    clickhouse,
    `SELECT time_zone FROM time_zones WHERE tenant = '${keys.nameOf('concurrent')}'`,
  );
  assert.deepEqual(stored, [{ time_zone: await zoneOf(caller) }]);
});

test('an unknown zone is a 400 that names a near match, and changes nothing', async () => {
  const caller = await callerOfTenant('unknown');
  const nearest: Readonly<Record<string, string>> = {
    'Europe/Berlim': 'Europe/Berlin',
    'Los Angeles': 'America/Los_Angeles',
    'new york': 'America/New_York',
    kyiv: 'Europe/Kyiv',
    'Asia/Kathmandu ': 'Asia/Kathmandu',
  };
  for (const [sent, near] of Object.entries(nearest)) {
    const { status, json } = await put(caller, sent);
    const message = `must be an IANA time zone, for example ${near}`;
    assert.deepEqual([status, json.error.details], [400, [{ path: 'time_zone', message }]], sent);
  }
  for (const sent of ['', 'Factory', '+03:00', 'Europe', '🙂', null, 3, ['UTC'], undefined])
    assert.equal(outcomeOf(await put(caller, sent)), '400 INVALID_REQUEST', `${sent}`);
  assert.equal(await zoneOf(caller), 'UTC');
});

test('PUT settings needs scope admin, and GET settings scope read', async () => {
  const caller = async (scope: 'read' | 'write') =>
    callerOf(service, await keys.add({ tenant: 'scopes', scopes: [scope] }));
  const [reader, writer] = [await caller('read'), await caller('write')];
  assert.equal((await reader.get(path)).status, 200);
  for (const one of [reader, writer]) assert.equal((await put(one, 'Asia/Tokyo')).status, 403);
  assert.equal((await writer.get(path)).status, 403);
});

test('Intl knows each zone that ClickHouse knows', async () => {
  const query = "SELECT time_zone AS name FROM system.time_zones WHERE time_zone != 'Factory'";
  const names = (await selectRows<{ name: string }>(clickhouse, query)).map(({ name }) => name);
  const isUnknown = (timeZone: string): boolean => {
    try {
      return new Intl.DateTimeFormat('en', { timeZone }) === null;
    } catch {
      return true;
    }
  };
  assert.ok(names.length > 400);
  assert.deepEqual(names.filter(isUnknown), []);
});

test('goals, velocity, classes and the reliability of predictions count local days', async () => {
  const caller = await callerOfTenant('days');
  assert.equal((await put(caller, elsewhere)).status, 202);
  const today = dayIn(elsewhere);
  const midnight = Date.parse(`${today}T00:00:00${offset}`);
  const dayBefore = dayIn(elsewhere, midnight - 1);
  const answers = [midnight - 1, midnight, midnight + 1].map((ms) =>
    event({ user_id: 'ada', occurred_at: new Date(ms).toISOString() }),
  );
  assert.equal((await caller.trackAll(answers)).status, 200);
  assert.equal(
    (await caller.send('PUT', '/api/v1/groups/class', { name: 'Class', user_ids: ['ada'] })).status,
    200,
  );
  await waitUntilStored(caller);

  const goal = (target_date: string) =>
    caller.send('PUT', '/api/v1/goals/ada', { target_score: 1200, target_date });
  assert.equal((await goal(today)).status, 200);
  const past = await goal(dayBefore);
  assert.equal(past.json.error.details[0].message, `must be today (${today}) or later`);

  const { series } = (await caller.get('/api/v1/velocity/ada?days=7')).json.data;
  const attempts = series.slice(-2).map((day: Record<string, unknown>) => [day.date, day.attempts]);
  assert.deepEqual(attempts, [
    [dayBefore, 1],
    [today, 2],
  ]);
  const { since, active } = (await caller.get('/api/v1/groups/class/summary?days=7')).json.data;
  assert.deepEqual([since, active], [dayIn(elsewhere, midnight - 6 * 86_400_000), 1]);
  const counts = await Promise.all(
    indices(2).map(
      async (i) => (await caller.get(`/api/v1/model/reliability?days=${i + 1}`)).json.data.answers,
    ),
  );
  assert.deepEqual(counts, [2, 3]);
  await askUntil(
    'the end of the change',
    () => caller.get(path),
    ({ json }) => json.data.time_zone_change.status === 'done',
  );
});
