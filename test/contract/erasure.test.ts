/** Erasing a learner: the service removes everything, proves it, and keeps the data of others and of a new history. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { encodeForecastRow, encodeGoalRow } from '../../src/contracts/journal/journal.js';
import { hashLearner } from '../../src/contracts/learners/learner-name.js';
import { parseLearnerHash } from '../../src/contracts/webhooks/webhook-events.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { createErasureFinisher } from '../../src/services/corrections/erasures.js';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { redrive } from '../../src/store/corrections/redrive.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import {
  acceptedCountsKey,
  erasedLearnersKey,
  eventIdsKey,
  forecastsKey,
  journalKey,
  outboxKey,
  parkedKey,
  partitionOf,
  rareSkillsKey,
  removedCountsKey,
} from '../../src/store/redis/keys.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { hashText } from '../../src/store/redis/wire/binary.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createCorrectionWarehouse } from '../../src/warehouse/maintenance/correction-warehouse.js';
import { attemptRow, encoded } from '../support/builders/attempt-rows.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { erasureDone, takeBack } from '../support/builders/learner-data.js';
import { auditsOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { keysThatSay, tablesThatSay } from '../support/inspect/traces.js';
import { clickhouseOf, redisOf, startService } from '../support/servers/service.js';
import { subscribe } from '../support/servers/webhook-subscription.js';
import { valuesOf } from '../support/values-of.js';
import { emptied, waitFor } from '../support/wait.js';

const service = await startService({ after });
const caller = callerOf(service, service.key);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const endpoint = await subscribe(redis, 'default', ['mastery.reached', 'erasure.completed']);

const partition = (user: string): number => partitionOf('default', user, defaultPartitions);
const outbox = createOutbox(redis, defaultPartitions);
const drained = () => waitFor('an empty outbox', async () => (await outbox.facts()).outboxLength === 0);

const answersOf = (user: string, count: number, name = 'e') =>
  indices(count).map((i) =>
    event({
      ...{ user_id: user, skill_id: `skill-${i % 3}`, item_id: `item-${i}`, is_correct: i % 2 === 0 },
      ...{ event_id: `${name}-${i}`, occurred_at: `2026-0${1 + (i % 4)}-02T03:04:05Z` },
    }),
  );
async function track(events: readonly object[]): Promise<void> {
  const { status, text } = await caller.trackAll(events);
  assert.equal(status, 200, text);
}
const setGoal = async (user: string): Promise<void> => {
  const path = `/api/v1/goals/${encodeURIComponent(user)}`;
  assert.equal((await caller.send('PUT', path, { target_score: 1200 })).status, 200);
};

const erase = (user: string) => caller.send('DELETE', `/api/v1/learners/${encodeURIComponent(user)}`);
/** @returns the status URL */
async function startErasure(user: string): Promise<string> {
  const { status, json } = await erase(user);
  assert.equal(status, 202);
  return json.data.status_url;
}
const finish = (url: string) => erasureDone(caller, url);
const eraseCompletely = async (user: string) => finish(await startErasure(user));
const erasedAttempts = ({ json }: JsonAnswer): number =>
  json.data.places.find(({ place }: { place: string }) => place === 'attempts').before;

async function assertGone(text: string): Promise<void> {
  assert.deepEqual(await keysThatSay(redis, text), []);
  assert.deepEqual(await tablesThatSay(clickhouse, text), {});
}
const sumOf = async (key: string): Promise<number> =>
  Object.values(await redis.hgetall(key)).reduce((sum, n) => sum + Number(n), 0);
async function removedAnswers(): Promise<number> {
  const sums = await Promise.all(indices(defaultPartitions).map((each) => sumOf(removedCountsKey(each))));
  return sums.reduce((sum, n) => sum + n, 0);
}
const rowsIn = async (table: string, user: string): Promise<number> => {
  const query = `SELECT toUInt32(count()) AS n FROM ${table} WHERE user_id = {user:String}`;
  const [row] = await selectRows<{ n: number }>(clickhouse, query, { params: { user } });
  return row?.n ?? 0;
};
const skillDays = () =>
  selectRows<object>(
    clickhouse,
    'SELECT skill_id, toString(day) AS day, attempts, correct, learners FROM skill_daily ORDER BY skill_id, day',
  );

/** Rows, learners, gaps in their sequences, and the sums of the rollups, of learners with these names. */
const storedOf = (users: string) =>
  selectRows<object>(
    clickhouse,
    `SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(user_id)) AS learners,
      toUInt32((SELECT sum(last) - sum(n) FROM (SELECT max(learner_seq) AS last, count() AS n FROM attempts
        WHERE user_id LIKE {users:String} GROUP BY user_id))) AS gaps,
      toUInt32((SELECT sum(attempts) FROM learner_skill_daily WHERE user_id LIKE {users:String})) AS days,
      toUInt32((SELECT sum(attempts) FROM learner_skill_total WHERE user_id LIKE {users:String})) AS totals,
      toUInt32((SELECT sum(attempts) FROM daily_skill)
        - (SELECT count() FROM attempts WHERE user_id NOT LIKE {users:String})) AS skills
     FROM attempts WHERE user_id LIKE {users:String}`,
    { params: { users } },
  );
const each = (rows: number, learners = 1) => [
  { rows, learners, gaps: 0, days: rows, totals: rows, skills: rows },
];

test('DELETE /learners/{user_id} removes the learner everywhere and returns a receipt with counts', async () => {
  const user = "gone '\\ ü";
  const isOwn = ({ id }: { readonly id: string }) => parseLearnerHash(id) === hashLearner('default', user);
  await track(answersOf('stays', 30));
  await drained();
  const others = await skillDays();
  await track(answersOf(user, 40).map((answer) => ({ ...answer, is_correct: true })));
  const reached = (await endpoint.messages()).filter(isOwn).map(({ type }) => type);
  assert.deepEqual(reached, Array(3).fill('mastery.reached'));
  await setGoal(user);
  assert.equal((await caller.get(`/api/v1/predictions/${encodeURIComponent(user)}`)).status, 200);
  await drained();
  const rareLearners = () => redis.hgetBuffer(rareSkillsKey('default'), 'skill-0');
  assert.deepEqual(await rareLearners(), Buffer.concat(['stays', user].map(hashText)));
  const ids = eventIdsKey(partition(user), 'default', user);
  assert.equal(await redis.exists(ids), 1);
  const { status, json: started } = await erase(user);
  assert.equal(status, 202);
  assert.equal(await redis.exists(ids), 0, 'event ids remain after the response');
  const { erasure_id: id, status_url: url } = started.data;
  assert.equal(url, `/api/v1/erasures/${id}`);
  assert.equal((await caller.get(`/api/v1/mastery/${encodeURIComponent(user)}`)).status, 404);
  const again = await erase(user);
  assert.equal(again.status, 202);
  assert.equal(again.json.data.erasure_id, id, 'a repeated request starts another');

  const { data } = (await finish(url)).json;
  const places: { place: string; before: number; after: number }[] = data.places;
  for (const name of ['attempts', 'learner_sums'])
    assert.equal(places.find(({ place }) => place === name)?.before, 40, name);
  assert.ok(places.every((place) => place.after === 0));
  assert.ok(data.removed.records >= 5 && data.removed.items === 40);
  const messages = await endpoint.messages();
  assert.equal(messages.at(-1)?.type, 'erasure.completed');
  assert.deepEqual(messages.filter(isOwn), []);
  assert.equal(JSON.stringify(data).includes('gone'), false, 'the receipt names the learner');
  const params = { ...data.proof.parameters, user_id: user };
  const proof = await selectRows<{ remaining: string }>(clickhouse, data.proof.query, { params });
  assert.deepEqual(new Set(proof.map(({ remaining }) => Number(remaining))), new Set([0]));
  for (const text of ["gone '", 'gone \\u', "gone \\\\'"]) await assertGone(text);
  assert.deepEqual(await rareLearners(), hashText('stays'));
  assert.deepEqual(await skillDays(), others, 'the sums of other learners changed');
  assert.equal(await sumOf(removedCountsKey(partition(user))), 40);
  assert.ok((await sumOf(acceptedCountsKey(partition(user)))) >= 40);

  const first = await caller.track(answersOf(user, 1)[0]);
  const { total_attempts, mastery_before } = first.json.data;
  assert.deepEqual([first.status, total_attempts, mastery_before], [200, 1, 0.3]);
  assert.equal(first.headers['idempotent-replayed'], undefined);
});

test('DELETE /learners/{user_id} keeps answers and webhook events that arrive during the erasure', async () => {
  const user = 'returns';
  const reachMastery = (skill_id: string) => track(indices(10).map(() => event({ user_id: user, skill_id })));
  await reachMastery('before');
  const url = await startErasure(user);
  await reachMastery('after');
  assert.equal(erasedAttempts(await finish(url)), 10);
  await drained();
  const { skills } = (await caller.get(`/api/v1/mastery/${user}`)).json.data;
  assert.deepEqual([skills.length, skills[0].skill_id, skills[0].total_attempts], [1, 'after', 10]);
  assert.deepEqual(await storedOf(user), each(10));
  const messages = (await endpoint.messages()).map(({ data }) => data);
  const own = messages.filter(({ user_id }) => user_id === user);
  assert.deepEqual(valuesOf(own, 'skill_id'), ['after']);
  assert.equal(erasedAttempts(await eraseCompletely(user)), 10);
  await assertGone(user);
});

test('Two erasures of one learner and a retraction each remove the answers of one history', async () => {
  const user = 'again';
  const before = await removedAnswers();
  await track(answersOf(user, 6, 'first'));
  const first = await startErasure(user);
  await track(answersOf(user, 4, 'second'));
  const second = await startErasure(user);
  await track(answersOf(user, 3, 'third'));
  const retraction = await takeBack(caller, user, 'third-1');
  assert.equal(retraction.status, 200, retraction.text);
  assert.deepEqual([erasedAttempts(await finish(first)), erasedAttempts(await finish(second))], [6, 4]);
  await drained();
  assert.deepEqual(await storedOf(user), each(2));
  assert.equal((await removedAnswers()) - before, 6 + 4 + 1);
});

test('An erasure during an import removes the lines before it and keeps the later ones', async (t) => {
  const [rows, learners] = [8000, 4];
  const lines = indices(rows).map((i) => `import-${i % learners},skill-${i % 7},${i % 3 > 0 ? 1 : 0},${i}`);
  const file = join(service.dataDir, 'answers.csv');
  await writeFile(file, `user_id,skill_id,correct,order\n${lines.join('\n')}\n`);
  const imported = runCommand('import', { DATA_DIR: service.dataDir }, file);
  await waitFor('answers', async () => (await caller.get('/api/v1/mastery/import-1')).status === 200);
  const url = await startErasure('import-1');
  const { code, err } = await imported;
  assert.equal(code, 0, err);
  const erased = erasedAttempts(await finish(url));
  assert.ok(erased > 0);
  const remaining = rows / learners - erased;
  t.diagnostic(`the erasure removed ${erased} of ${rows / learners} lines`);
  await drained();
  assert.deepEqual(await storedOf('import-1'), remaining > 0 ? each(remaining) : each(0, 0));
  assert.deepEqual(await storedOf('import-%'), each(rows - erased, remaining > 0 ? learners : learners - 1));
});

test('The audit finds no difference after these erasures', async () => {
  const { mismatches, notCompared } = await auditsOf(redis, clickhouse)();
  assert.deepEqual([mismatches, notCompared], [[], []]);
});

// The following tests write rows that no answer led to, so that an audit would report them.

test('The journal drain drops goals and forecasts from before the erasure', async () => {
  const user = 'late-in-the-journal';
  await setGoal(user);
  await track(answersOf(user, 1));
  const before = Date.now() - 60_000;
  await eraseCompletely(user);
  const later = Date.now() + 3_600_000;
  const [forecasts, goals] = [forecastsKey(partition(user)), journalKey(partition(user))];
  const goal = encodeGoalRow({ tenant: 'default', userId: user, targetScore: 1000, targetDate: null });
  for (const madeAt of [before, later]) {
    const row = encodeForecastRow(servedForecast({ userId: user, madeAt }));
    await redis.xadd(forecasts, '*', 'k', 'forecast_2', 'r', row);
    await redis.xadd(goals, '*', 'k', 'goal', 'r', `${madeAt}\t${goal}`);
  }
  for (const key of [forecasts, goals]) await emptied(redis, key);
  for (const [table, time] of Object.entries({ served_forecasts: 'made_at', goal_changes: 'updated_at' })) {
    const query = `SELECT toString(toUnixTimestamp64Milli(${time})) AS at FROM ${table} WHERE user_id = {user:String}`;
    assert.deepEqual(await selectRows(clickhouse, query, { params: { user } }), [{ at: `${later}` }]);
  }
});

/** Searches for late rows as if this time had passed. The service searches too, at most once an hour. */
async function findLateRows(passedMs: number): Promise<void> {
  const finishErasures = createErasureFinisher({
    store: createErasureStore(redis, defaultPartitions),
    messages: { remove: async () => undefined },
    warehouse: createCorrectionWarehouse(clickhouse),
    logger: createLogger('silent', 'test'),
    now: () => Date.now() + passedMs,
  });
  await redis.del('st:erased:looked');
  await finishErasures();
}

test('The erasure finisher removes rows that a stalled process inserts after the erasure', async () => {
  const user = 'late-in-clickhouse';
  const key = erasedLearnersKey(partition(user));
  const looks = async () => {
    const record = await redis.hget(key, hashLearner('default', user));
    return record === null ? 'forgotten' : JSON.parse(record).looks;
  };
  await track(answersOf(user, 1));
  const before = Date.now() - 60_000;
  await eraseCompletely(user);
  await track([...answersOf(user, 1), ...answersOf('other-learner', 1)]);
  const insertLate = async (): Promise<void> => {
    const learner = { tenant: 'default', user_id: user };
    const snapshot = { ...learner, partition_id: 1, learner_seq: 1, month: 202_501, state: '{}' };
    const forecasts = [before, before + 3_600_000].map((made_at) => ({ ...learner, made_at }));
    const format = 'JSONEachRow';
    await clickhouse.insert({ table: 'learner_snapshots', format, values: [snapshot] });
    await clickhouse.insert({ table: 'served_forecasts', format, values: forecasts });
  };
  const lateRows = async () => [
    await rowsIn('learner_snapshots', user),
    await rowsIn('served_forecasts', user),
  ];
  await insertLate();
  await findLateRows(0);
  assert.deepEqual([await looks(), ...(await lateRows())], [0, 1, 2], 'the search came too early');
  await waitFor('the first search', async () => {
    await findLateRows(3_600_000);
    return (await looks()) === 1;
  });
  assert.deepEqual(await lateRows(), [0, 1], 'a forecast of the new history is missing');
  await insertLate();
  await waitFor('the last search', async () => {
    await findLateRows(8 * 86_400_000);
    return (await looks()) === 'forgotten';
  });
  assert.equal(await rowsIn('learner_snapshots', user), 0);
  const { skills } = (await caller.get(`/api/v1/mastery/${user}`)).json.data;
  assert.equal(skills[0].total_attempts, 1);
});

test('The redrive drops parked rows from before the erasure', async () => {
  const user = 'late-and-parked';
  const stream = outboxKey(partition(user));
  await track(answersOf(user, 1));
  await eraseCompletely(user);
  const before = await removedAnswers();
  // Only rows with a learner version were counted as accepted.
  for (const learnerVersion of [1, 0]) {
    const row = attemptRow(1, { userId: user, learnerVersion });
    const fields = ['id', `1-${learnerVersion}`, 'reason', 'TEST', 'r', encoded(row)];
    await redis.xadd(parkedKey(stream), '*', ...fields);
  }
  assert.deepEqual(await redrive(redis, stream), { moved: 0, stayed: 0, erased: 2 });
  assert.equal(await removedAnswers(), before + 1);
  await assertGone(user);
});

test('DELETE /learners/{user_id} erases a learner with a goal only, and returns 404 for an unknown one', async () => {
  const user = 'goal-only';
  await setGoal(user);
  await waitFor('the goal in ClickHouse', async () => (await rowsIn('goal_changes', user)) === 1);
  await eraseCompletely(user);
  await assertGone(user);
  assert.equal(outcomeOf(await caller.get(`/api/v1/goals/${user}`)), '404 GOAL_NOT_FOUND');
  assert.equal(outcomeOf(await erase(user)), '404 USER_NOT_FOUND');
});
