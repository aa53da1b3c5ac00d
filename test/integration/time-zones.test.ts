/** Days of tenants in three time zones, and of one whose zone changes while answers arrive. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { decodeLearner, learnerField, skillField } from '../../src/store/learners/learner-codec.js';
import { decodeSkill } from '../../src/store/learners/skill-codec.js';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { erasureDone, takeBack } from '../support/builders/learner-data.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { keysOf, startOnBareRedis } from '../support/servers/service.js';
import { askUntil, waitUntilStored } from '../support/wait.js';

const { service, clickhouse, redis, env } = await startOnBareRedis({ after });
const keys = await keysOf({ after }, service);

const hourMs = 3_600_000;
const user = 'learner';
/** The zone of `moved` is UTC at first, and later that of `pacific`. */
const zones: Readonly<Record<string, string>> = {
  ...{ pacific: 'America/Los_Angeles', nepal: 'Asia/Kathmandu', berlin: 'Europe/Berlin' },
  moved: 'America/Los_Angeles',
};
const tenants = Object.keys(zones);
const callers = Object.fromEntries(
  await Promise.all(
    tenants.map(async (tenant) => [tenant, callerOf(service, await keys.add({ tenant }))] as const),
  ),
);
const callerFor = (tenant: string) => callers[tenant] ?? assert.fail(tenant);

/** Around the daylight-saving changes of 2026 in Los Angeles and in Berlin; 23:59 and 00:00 of many zones. */
const changes = ['2026-03-08T10:00Z', '2026-03-29T01:00Z', '2026-10-25T01:00Z', '2026-11-01T09:00Z'];
const hours = [-36, -27, -19, -10.25, -3, -2, -1.001, -1, -0.001, 0, 1, 5.999, 13.75, 14, 21.99, 22.999, 31];
const times = changes.flatMap((change) => hours.map((hour) => Date.parse(change) + hour * hourMs));
/** Every ninth answer arrives after all others. */
const isLate = (i: number): boolean => i % 9 === 4;
const order = [...times.keys()].sort((a, b) => Number(isLate(a)) - Number(isLate(b)));

const answers = order.map((i) => ({
  user_id: user,
  ...(i % 5 === 0
    ? { skill_ids: ['algebra', 'reading'] }
    : { skill_id: i % 2 === 0 ? 'algebra' : 'reading' }),
  is_correct: i % 3 > 0,
  time_spent_seconds: 10 + i,
  item_id: `item ${i % 7}`,
  event_id: `event ${i}`,
  occurred_at: new Date(times[i] as number).toISOString(),
}));
type Sent = (typeof answers)[number];

const formats = new Map(
  Object.values(zones).map((timeZone) => [
    timeZone,
    new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' }),
  ]),
);
const dayOf = (tenant: string, { occurred_at }: Sent): string =>
  formats.get(zones[tenant] ?? '')?.format(Date.parse(occurred_at)) ?? assert.fail(tenant);
const mondayOf = (day: string): string => {
  const date = new Date(day);
  date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  return date.toISOString().slice(0, 10);
};
const skillsOf = (sent: Sent): readonly string[] => ('skill_id' in sent ? [sent.skill_id] : sent.skill_ids);

async function send(tenant: string, events: readonly Sent[]): Promise<void> {
  const { status, text } = await callerFor(tenant).trackAll(events);
  assert.equal(status, 200, text);
}
const put = (tenant: string, path: string, body: object) => callerFor(tenant).send('PUT', path, body);
const setZone = async (tenant: string): Promise<void> =>
  assert.equal((await put(tenant, '/api/v1/settings', { time_zone: zones[tenant] })).status, 202);
const zoneChanged = (tenant: string) =>
  askUntil(
    `the days of ${tenant}`,
    () => callerFor(tenant).get('/api/v1/settings'),
    ({ json }) => json.data.time_zone_change.status === 'done',
  );
const select = (query: string): Promise<unknown[]> => selectRows(clickhouse, query);

/** Values by key, in the order of the keys. */
function countBy(keysOfOne: (sent: Sent) => readonly string[], sent: readonly Sent[]) {
  const counts = new Map<string, [number, number]>();
  for (const one of sent)
    for (const key of keysOfOne(one)) {
      const [n, correct] = counts.get(key) ?? [0, 0];
      counts.set(key, [n + 1, correct + Number(one.is_correct)]);
    }
  return [...counts].map(([key, values]) => [key, ...values].join(' ')).sort();
}

/** `key answers correct` of a view. */
async function readSums(tenant: string, view: string, key: string, sums = 'sum(attempts), sum(correct)') {
  const query = `SELECT concat_ws(' ', ${key}) AS id, arrayStringConcat([${sums}], ' ') AS n FROM ${view}
    WHERE tenant = '${keys.nameOf(tenant)}' GROUP BY id`;
  return ((await select(query)) as { id: string; n: string }[]).map(({ id, n }) => `${id} ${n}`).sort();
}

async function assertDays(tenant: string, sent: readonly Sent[]): Promise<void> {
  const day = (one: Sent): string => dayOf(tenant, one);
  const bySkill = (one: Sent): string[] => skillsOf(one).map((skill) => `${skill} ${day(one)}`);
  const rows = await select(
    `SELECT event_id, toString(local_date) AS day FROM attempts WHERE tenant = '${keys.nameOf(tenant)}' ORDER BY event_id`,
  );
  const byId = sent.map((one) => ({ event_id: one.event_id, day: day(one) }));
  assert.deepEqual(
    rows,
    byId.sort((a, b) => (a.event_id < b.event_id ? -1 : 1)),
    tenant,
  );
  for (const view of ['learner_skill_daily', 'skill_daily'])
    assert.deepEqual(await readSums(tenant, view, 'skill_id, toString(day)'), countBy(bySkill, sent), view);
  const [first = ''] = sent.map(day).sort();
  const weekOf = (one: Sent): number =>
    (Date.parse(mondayOf(day(one))) - Date.parse(mondayOf(first))) / (168 * hourMs);
  assert.deepEqual(
    await readSums(
      tenant,
      'cohort_skill_weekly',
      'toString(cohort), skill_id, toString(week)',
      'sum(attempts), toUInt64(round(sum(attempts * accuracy)))',
    ),
    countBy((one) => skillsOf(one).map((skill) => `${mondayOf(first)} ${skill} ${weekOf(one)}`), sent),
  );
  assert.deepEqual(
    await readSums(tenant, 'group_weekly', 'toString(week)', 'sum(answers), sum(correct)'),
    countBy((one) => [mondayOf(day(one))], sent),
  );
  const { json } = await callerFor(tenant).get(`/api/v1/velocity/${user}?days=365`);
  const series = json.data.series as { date: string; attempts: number; correct: number }[];
  const practised = series.filter(({ attempts }) => attempts > 0);
  const since = series[0]?.date ?? '9999';
  assert.deepEqual(
    practised.map(({ date, attempts, correct }) => `${date} ${attempts} ${correct}`),
    countBy((one) => (day(one) >= since ? [day(one)] : []), sent),
  );
}

/** Without random versions; numbers to nine digits. */
async function readState(tenant: string): Promise<object> {
  const name = keys.nameOf(tenant);
  const fields = await redis.hgetallBuffer(learnerKey(partitionOf(name, user, 16), name, user));
  const get = (field: string): Buffer => fields[field] ?? assert.fail(field);
  const learner = { ...decodeLearner(get(learnerField)), version: 0 };
  const skills = ['algebra', 'reading'].map((id) => decodeSkill(get(skillField(id))));
  const round = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(9)) : value;
  return JSON.parse(JSON.stringify({ learner, skills }, round));
}

test('days are days of the zone, and a changed zone leaves the same data as one from the start', async () => {
  for (const tenant of tenants)
    assert.equal(
      (await put(tenant, '/api/v1/groups/class', { name: 'Class', user_ids: [user] })).status,
      200,
    );
  for (const tenant of ['pacific', 'nepal', 'berlin']) await setZone(tenant);
  const half = answers.length / 2;
  for (const tenant of tenants) await send(tenant, answers.slice(0, half));
  const changing = setZone('moved');
  for (let i = half; i < answers.length; i += 4)
    for (const tenant of tenants) await send(tenant, answers.slice(i, i + 4));
  await changing;
  for (const tenant of tenants) await zoneChanged(tenant);
  await waitUntilStored(callerFor('moved'));
  for (const tenant of tenants) await assertDays(tenant, answers);
  assert.deepEqual(await readState('moved'), await readState('pacific'));
});

test('an audit and rebuild --verify find no difference, also after a retraction and an erasure', async () => {
  const audit = auditsOf(redis, clickhouse);
  const [retracted, ...remaining] = answers.toReversed();
  assert.equal((await takeBack(callerFor('moved'), user, retracted?.event_id ?? '')).status, 200);
  const erased = await callerFor('nepal').call({ method: 'DELETE', path: `/api/v1/learners/${user}` });
  await erasureDone(callerFor('nepal'), erased.json.data.status_url);
  await waitUntilStored(callerFor('moved'));
  await assertDays('moved', remaining.toReversed());
  await assertDays('pacific', answers);
  assert.deepEqual(await readSums('nepal', 'learner_skill_daily', 'skill_id'), []);
  assert.deepEqual(namesOf((await audit()).mismatches), []);
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);
});
