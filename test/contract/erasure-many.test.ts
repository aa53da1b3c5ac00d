/** Erasures that meet: many at once, of one learner in a row, and with answers that are taken back. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { partitionOf, removedCountsKey } from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { askInTurn, erasureDone, takeBack } from '../support/builders/learner-data.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { callerOf, event } from '../support/http/http.js';
import { clickhouseOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after });
const caller = callerOf(service, service.key);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const audit = auditsOf(redis, clickhouse);
const { open } = createErasureStore(redis, defaultPartitions);
const limitMs = 240_000;

const answers = (user: string, n: number, name: string) =>
  Array.from({ length: n }, (_, i) =>
    event({ user_id: user, skill_id: `skill-${i % 3}`, is_correct: i % 2 > 0, event_id: `${name}-${i}` }),
  );

async function post(events: readonly object[]): Promise<void> {
  const { status, text } = await caller.trackAll(events);
  assert.equal(status, 200, text);
}

/** @returns where the receipt will be */
async function erase(user: string): Promise<string> {
  const { status, json } = await caller.call({ method: 'DELETE', path: `/api/v1/learners/${user}` });
  assert.equal(status, 202);
  return json.data.status_url;
}

const outbox = createOutbox(redis, defaultPartitions);
const drained = () =>
  waitFor('an empty outbox', async () => (await outbox.facts()).outboxLength === 0, limitMs);
const allDone = () => waitFor('the erasures', async () => (await open()).length === 0, limitMs);

async function attemptsBefore(url: string): Promise<number> {
  const { json } = await erasureDone(caller, url);
  return json.data.places.find(({ place }: { place: string }) => place === 'attempts').before;
}

/** Answers in the table and in the sums. */
const stored = (users: string) =>
  selectRows<object>(
    clickhouse,
    `SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(user_id)) AS learners,
      toUInt32((SELECT sum(attempts) FROM learner_skill_daily WHERE user_id LIKE {users:String})) AS own,
      toUInt32((SELECT sum(attempts) FROM learner_skill_total WHERE user_id LIKE {users:String})) AS totals,
      toUInt32((SELECT sum(attempts) FROM daily_skill) - (SELECT count() FROM attempts WHERE user_id NOT LIKE {users:String})) AS skills
     FROM attempts WHERE user_id LIKE {users:String}`,
    { params: { users } },
  );

async function removed(partitions: Iterable<number>): Promise<number> {
  let sum = 0;
  for (const partition of partitions)
    for (const n of Object.values(await redis.hgetall(removedCountsKey(partition)))) sum += Number(n);
  return sum;
}

const everywhere = Array.from({ length: defaultPartitions }, (_, partition) => partition);

test('many at once, who answer again at once, while audits run', { timeout: 600_000 }, async () => {
  const users = Array.from({ length: 250 }, (_, i) => `many-${i}`);
  const before = await removed(everywhere);
  for (let at = 0; at < users.length; at += 50)
    await post(users.slice(at, at + 50).flatMap((user) => answers(user, 5, 'old')));
  let going = true;
  const audits = (async () => {
    while (going) assert.deepEqual(namesOf((await audit({ maxWaitMs: 0 })).mismatches), []);
  })();
  const urls = await Promise.all(
    users.map(async (user) => {
      const url = await erase(user);
      await post(answers(user, 2, 'new'));
      return url;
    }),
  );
  await allDone().finally(() => {
    going = false;
  });
  await audits;
  const rows = 2 * users.length;
  await drained();
  assert.deepEqual(await stored('many-%'), [
    { rows, learners: users.length, own: rows, totals: rows, skills: rows },
  ]);
  assert.equal((await removed(everywhere)) - before, 5 * users.length);
  assert.equal(await attemptsBefore(urls[0] as string), 5);
  assert.equal(await attemptsBefore(urls.at(-1) as string), 5);
  const { mismatches, notCompared } = await audit();
  assert.deepEqual([namesOf(mismatches), notCompared], [[], []]);
});

test('one learner twice in a row, and an answer taken back behind', { timeout: 600_000 }, async () => {
  const user = 'again';
  const place = [partitionOf('default', user, defaultPartitions)];
  const before = await removed(place);
  await post(answers(user, 6, 'first'));
  const first = await erase(user);
  await post(answers(user, 4, 'second'));
  const second = await erase(user);
  await post(answers(user, 3, 'third'));
  const taken = await takeBack(caller, user, 'third-1');
  assert.equal(taken.status, 200, taken.text);
  await allDone();
  assert.deepEqual([await attemptsBefore(first), await attemptsBefore(second)], [6, 4]);
  const two = { rows: 2, learners: 1, own: 2, totals: 2, skills: 2 };
  await drained();
  assert.deepEqual(await stored(user), [two]);
  assert.equal((await removed(place)) - before, 6 + 4 + 1);
  const { json } = await askInTurn(() => caller.get(`/api/v1/learners/${user}/attempts`));
  assert.deepEqual(
    json.data.attempts.map(({ event_id }: { event_id: string }) => event_id),
    ['third-2', 'third-0'],
  );
  const { mismatches } = await audit();
  assert.deepEqual(namesOf(mismatches), []);
});
