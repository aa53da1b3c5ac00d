/** Learners whose first answers were dropped for their age are rebuilt as they were. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { attemptColumns } from '../../src/contracts/answers/attempt-row.js';
import { rareSkillsKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { askInTurn, takeBack } from '../support/builders/learner-data.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { countOf } from '../support/inspect/warehouse.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { makeOlder } from '../support/servers/older-deployment.js';
import { clickhouseOf, redisOf, startBareRedis, startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const redisServer = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redisServer.url });
const clickhouse = clickhouseOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);
const { trackAll, get } = caller;

beforeEach(awayFromMidnight);

exitAfterTests();

const learners = Array.from({ length: 20 }, (_, i) => `learner "${i}" \\ ü`);
let made = 0;
/** Event id of each learner's first answer. */
const firstOf = new Map<string, string>();

/** A learner's answers on some skills and many items, in batches of different lengths. */
async function answer(userId: string, count: number): Promise<void> {
  for (let left = count; left > 0; ) {
    const events = Array.from({ length: Math.min(left, 1 + (made % 7)) }, () => {
      made += 1;
      if (!firstOf.has(userId)) firstOf.set(userId, `event ${made}`);
      return {
        user_id: userId,
        // The first answers of the first four learners; they will be archived.
        skill_id: made % 60 === 1 && made < 240 ? 'rare' : `skill ${made % 5}`,
        item_id: `item ${(made * 37) % 200}`,
        is_correct: made % 3 > 0,
        time_spent_seconds: 10 + (made % 50),
        event_id: `event ${made}`,
      };
    });
    const { status, text } = await trackAll(events);
    assert.equal(status, 200, text);
    left -= events.length;
  }
}

const stored = (count: number): Promise<unknown> =>
  waitFor('answers in ClickHouse', async () => (await countOf(clickhouse, 'attempts')) === count);

/** The learner's first half, and of every second one all, arrived a hundred days before. */
const arrivedLongAgo = `if(cityHash64(user_id) % 2 = 0, 1e9, 30)`;

async function makeOld(): Promise<void> {
  const columns = ['partition_id', 'outbox_ms', 'outbox_seq', ...attemptColumns].join(', ');
  await clickhouse.command({
    query: `INSERT INTO attempts (${columns})
      SELECT * REPLACE (received_at - INTERVAL 100 DAY AS received_at)
      FROM (SELECT ${columns} FROM attempts WHERE learner_seq <= ${arrivedLongAgo})`,
  });
  await clickhouse.command({
    query: `DELETE FROM attempts WHERE received_at > now() - INTERVAL 50 DAY AND learner_seq <= ${arrivedLongAgo}`,
  });
}

/** Records and items, and who answered what is rare; event ids of dropped answers are not remembered that long. */
async function records(): Promise<[string, string[]][]> {
  const dump = await dumpRedis(redis);
  return [...dump].filter(([name]) => /^st:\{p\d+\}:(l|h0|h1):|:rare$/.test(name)).sort();
}

/** What is asked for answers that are no longer there says so. */
async function checkReads(userId: string): Promise<void> {
  const name = encodeURIComponent(userId);
  const { json: list } = await askInTurn(() => get(`/api/v1/learners/${name}/attempts?limit=1000`));
  const kept = await selectRows(
    clickhouse,
    'SELECT learner_seq FROM attempts WHERE user_id = {userId:String} ORDER BY learner_seq DESC',
    { params: { userId } },
  );
  assert.deepEqual(
    [list.data.attempts.length, list.data.missing, list.data.next_cursor],
    [kept.length, 60 - kept.length, null],
  );
  const path = `/api/v1/mastery/${name}/skill%201?explain=true&steps=50`;
  const { json } = await askUntil(
    'steps',
    () => get(path),
    ({ json: told }) => told.data.explanation.steps !== null,
  );
  const { steps, pending_attempts, note } = json.data.explanation;
  const { total_attempts } = json.data;
  assert.deepEqual([pending_attempts, note], [0, 'Older answers are kept as daily sums only']);
  assert.ok(steps.length < total_attempts, `${steps.length} of ${total_attempts} answers`);
}

const keptRows = () =>
  selectRows<{ userId: string; id: string; seq: number }>(
    clickhouse,
    'SELECT user_id AS userId, event_id AS id, learner_seq AS seq FROM attempts ORDER BY userId, seq',
  );

/** Replays begin at a snapshot: what it has stays. @returns the records afterwards */
async function withoutSome(left: number): Promise<[string, string[]][]> {
  const [first] = await keptRows();
  const userId = first?.userId ?? '';
  const rowsNow = async () => (await keptRows()).filter((row) => row.userId === userId);
  const dropped = await takeBack(caller, userId, firstOf.get(userId) ?? '');
  assert.deepEqual([dropped.status, dropped.json.error.code], [404, 'NOT_FOUND']);
  for (const id of [first?.id, (await rowsNow()).at(-1)?.id]) {
    const { status, text } = await takeBack(caller, userId, id ?? '');
    assert.equal(status, 200, text);
  }
  await stored(left - 2);
  assert.deepEqual(
    (await rowsNow()).map(({ seq }) => seq),
    Array.from({ length: 28 }, (_, i) => 31 + i),
  );
  return records();
}

test('a rebuild after retention gives the same bytes', { timeout: 600_000 }, async () => {
  for (const userId of learners) await answer(userId, 60);
  await stored(60 * learners.length);
  const whole = await records();
  assert.ok(whole.length >= 2 * learners.length, `${whole.length} keys`);
  assert.equal(new Map(whole).get(rareSkillsKey('default'))?.length, 1);
  await makeOld();
  await stored(60 * learners.length);
  const env = { DATA_DIR: service.dataDir, REDIS_URL: redisServer.url };
  const retain = (...args: string[]) => runCommand('retain', env, ...args);
  assert.match((await retain()).err, /ATTEMPT_RETENTION_DAYS is 0/);
  const dry = await retain('--dry-run', '--days', '40');
  assert.deepEqual([dry.code, dry.err], [0, '']);
  assert.match(dry.out, /^ {2}\d{6} +\d+ answers +would be dropped\n$/);
  await stored(60 * learners.length);
  const dropped = await retain('--days', '40');
  assert.deepEqual([dropped.code, dropped.err], [0, '']);
  assert.equal(dropped.out, dry.out.replace('would be dropped', 'dropped').replace(/ +dropped/, '  dropped'));
  assert.equal((await retain('--days', '40')).out, 'nothing is old enough\n');
  const left = await countOf(clickhouse, 'attempts');
  assert.ok(left > 0 && left <= 30 * learners.length, `${left} rows are left`);

  await checkReads(learners[0] as string);
  const before = await withoutSome(left);

  await redisServer.kill();
  await redisServer.start();
  const { code, out, err } = await runCommand('rebuild', env, '--json');
  assert.deepEqual([code, err], [0, ''], out);
  const result = JSON.parse(out);
  assert.deepEqual([result.learners, result.answers, result.broken_learners], [learners.length, left - 2, 0]);
  assert.deepEqual(await records(), before);
  await waitFor('the service', async () => (await get('/api/v1/skills')).status === 200);
  await answer(learners[0] as string, 3);
  await stored(left + 1);
});

test('learners of an older deployment are restored from their snapshots too', {
  timeout: 600_000,
}, async (t) => {
  await waitFor('nothing in flight', async () => {
    const streams = [...(await redis.keys('st:*:out')), ...(await redis.keys('st:*:journal'))];
    return (await Promise.all(streams.map((key) => redis.xlen(key)))).every((length) => length === 0);
  });
  await service.stop();
  const before = await records();
  await makeOlder(redis);
  const { clickhouseUrl } = service;
  const env = { DATA_DIR: service.dataDir, REDIS_URL: redisServer.url, CLICKHOUSE_URL: clickhouseUrl };
  const { code, err } = await runCommand('rebuild', env);
  assert.deepEqual([code, err], [0, '']);
  assert.deepEqual(await records(), before);
  const again = await startService(t, { redisUrl: redisServer.url, clickhouseUrl });
  // Accepted are those that are stored. (Rollups have the rows of `makeOld` twice.)
  const audit = JSON.parse((await runCommand('audit', env, '--json')).out);
  assert.deepEqual([audit.accepted, audit.removed], [audit.stored, 0]);
  const rows = await countOf(clickhouse, 'attempts');
  const { userId, id } = (await keptRows()).at(-1) ?? { userId: '', id: '' };
  const { status, text } = await takeBack(callerOf(again, again.key), userId, id);
  assert.equal(status, 200, text);
  await stored(rows - 1);
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, JSON.parse(verified.out).differences], [0, []], verified.out);
});
