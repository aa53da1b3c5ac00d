/** `npm run retain`, what the API returns afterwards, and a rebuild from the snapshots that it leaves. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { attemptColumns } from '../../src/contracts/answers/attempt-row.js';
import { rareSkillsKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { askInTurn, takeBack } from '../support/builders/learner-data.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { countOf } from '../support/inspect/warehouse.js';
import { startOnBareRedis } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const { redisServer, service, clickhouse, redis, env } = await startOnBareRedis({ after });
const caller = callerOf(service, service.key);
const retain = (...args: string[]) => runCommand('retain', env, ...args);

const learners = Array.from({ length: 8 }, (_, i) => `learner "${i}" \\ ü`);
const [answersOfEach, oldAnswers] = [40, 20];
const total = answersOfEach * learners.length;
let sent = 0;

/** Sends answers on some skills and many items, in batches of different lengths. */
async function answer(userId: string, count: number): Promise<void> {
  for (let left = count; left > 0; ) {
    const events = Array.from({ length: Math.min(left, 1 + (sent % 7)) }, () => {
      sent += 1;
      return {
        user_id: userId,
        // The first answers of the first four learners, which the test archives.
        skill_id: sent % answersOfEach === 1 && sent < 4 * answersOfEach ? 'rare' : `skill ${sent % 5}`,
        item_id: `item ${(sent * 37) % 200}`,
        is_correct: sent % 3 > 0,
        time_spent_seconds: 10 + (sent % 50),
        event_id: `event ${sent}`,
      };
    });
    const { status, text } = await caller.trackAll(events);
    assert.equal(status, 200, text);
    left -= events.length;
  }
}

const waitUntilStored = (count: number): Promise<unknown> =>
  waitFor('answers in ClickHouse', async () => (await countOf(clickhouse, 'attempts')) === count);

/** Moves the first half of each learner's answers, and all of every second learner, 100 days into the past. */
async function makeOld(): Promise<void> {
  const isOld = `learner_seq <= if(cityHash64(user_id) % 2 = 0, 1e9, ${oldAnswers})`;
  const columns = ['partition_id', 'outbox_ms', 'outbox_seq', ...attemptColumns].join(', ');
  await clickhouse.command({
    query: `INSERT INTO attempts (${columns}) SELECT * REPLACE (received_at - INTERVAL 100 DAY AS received_at)
      FROM (SELECT ${columns} FROM attempts WHERE ${isOld})`,
  });
  const recent = 'received_at > now() - INTERVAL 50 DAY';
  await clickhouse.command({ query: `DELETE FROM attempts WHERE ${recent} AND ${isOld}` });
}

/** Records, items and learners of rare skills. Redis does not keep event ids of old answers. */
async function dumpRecords(): Promise<[string, string[]][]> {
  const dump = await dumpRedis(redis);
  return [...dump].filter(([name]) => /^st:\{p\d+\}:(l|h0|h1):|:rare$/.test(name)).sort();
}

/** Moves answers of now to another day. */
async function changeDays(): Promise<void> {
  const time_zone = new Date().getUTCHours() < 12 ? 'Etc/GMT+12' : 'Pacific/Kiritimati';
  assert.equal((await caller.send('PUT', '/api/v1/settings', { time_zone })).status, 202);
  const { json } = await askUntil(
    'days of the zone',
    () => caller.get('/api/v1/settings'),
    ({ json }) => json.data.time_zone_change.status === 'done',
  );
  assert.equal(json.data.time_zone_change.learners, learners.length);
}

const readRows = () =>
  selectRows<{ userId: string; id: string; seq: number }>(
    clickhouse,
    'SELECT user_id AS userId, event_id AS id, learner_seq AS seq FROM attempts ORDER BY userId, seq',
  );

test('npm run retain drops old answers, and a rebuild from their snapshots restores the same bytes', async () => {
  await awayFromMidnight();
  for (const userId of learners) await answer(userId, answersOfEach);
  await waitUntilStored(total);
  const whole = await dumpRecords();
  assert.ok(whole.length >= 2 * learners.length, `${whole.length} keys`);
  assert.equal(new Map(whole).get(rareSkillsKey('default'))?.length, 1);
  await makeOld();
  await waitUntilStored(total);

  assert.match((await retain()).err, /ATTEMPT_RETENTION_DAYS is 0/);
  const dry = await retain('--dry-run', '--days', '40');
  assert.deepEqual([dry.code, dry.err], [0, '']);
  assert.match(dry.out, /^ {2}\d{6} +\d+ answers +would be deleted\n$/);
  await waitUntilStored(total);
  const dropped = await retain('--days', '40');
  assert.deepEqual([dropped.code, dropped.err], [0, '']);
  assert.equal(dropped.out, dry.out.replace('would be deleted', 'deleted').replace(/ +deleted/, '  deleted'));
  assert.equal((await retain('--days', '40')).out, 'Nothing to delete\n');
  const left = await countOf(clickhouse, 'attempts');
  assert.ok(left > 0 && left <= total / 2, `${left} rows are left`);

  const rows = await readRows();
  const userId = rows[0]?.userId ?? '';
  const own = rows.filter((row) => row.userId === userId);
  const name = encodeURIComponent(userId);
  const { json: list } = await askInTurn(() => caller.get(`/api/v1/learners/${name}/attempts?limit=1000`));
  const { attempts, missing, next_cursor } = list.data;
  assert.deepEqual([attempts.length, missing, next_cursor], [own.length, answersOfEach - own.length, null]);
  const { json: mastery } = await askUntil(
    'the steps',
    () => caller.get(`/api/v1/mastery/${name}/skill%201?explain=true&steps=50`),
    ({ json }) => json.data.explanation.steps !== null,
  );
  const { steps, pending_attempts, note } = mastery.data.explanation;
  assert.deepEqual([pending_attempts, note], [0, 'Older answers are archived as daily sums.']);
  assert.ok(steps.length < mastery.data.total_attempts, `${steps.length} steps`);

  // The learner's first answer is archived, and its event id cannot be retracted any more.
  const firstId = `event ${1 + learners.indexOf(userId) * answersOfEach}`;
  const archived = await takeBack(caller, userId, firstId);
  assert.deepEqual([archived.status, archived.json.error.code], [404, 'NOT_FOUND']);
  for (const id of [own[0]?.id, own.at(-1)?.id]) {
    const { status, text } = await takeBack(caller, userId, id ?? '');
    assert.equal(status, 200, text);
  }
  await waitUntilStored(left - 2);
  const kept = (await readRows()).filter((row) => row.userId === userId);
  assert.equal(kept.length, oldAnswers - 2);
  for (const [i, { seq }] of kept.entries()) assert.equal(seq, oldAnswers + 1 + i);
  await changeDays();
  await waitUntilStored(left - 2);
  const before = await dumpRecords();
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);

  await redisServer.kill();
  await redisServer.start();
  const { code, out, err } = await runCommand('rebuild', env, '--json');
  assert.deepEqual([code, err], [0, ''], out);
  const result = JSON.parse(out);
  assert.deepEqual([result.learners, result.answers, result.broken_learners], [learners.length, left - 2, 0]);
  assert.deepEqual(await dumpRecords(), before);
  await waitFor('the service', async () => (await caller.get('/api/v1/skills')).status === 200);
  await answer(userId, 3);
  await waitUntilStored(left + 1);
});
