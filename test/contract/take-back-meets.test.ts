/** Taking an answer back where it meets an erasure, a fit, refused rows, retention, or another taking back. */

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Redis } from 'ioredis';
import { decodeAttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import {
  resolveSkillModel,
  type SkillModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { startReplay } from '../../src/domain/history/replay.js';
import { redrive } from '../../src/store/corrections/redrive.js';
import { removeExpiredIds } from '../../src/store/learners/id-sweep.js';
import { encodeSnapshot } from '../../src/store/learners/learner-snapshot.js';
import { publishModel } from '../../src/store/models/model-store.js';
import {
  archiveFenceKey,
  eventIdsKey,
  outboxKey,
  parkedKey,
  partitionOf,
  partitionPrefix,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAnswerArchive } from '../../src/warehouse/maintenance/answer-archive.js';
import { createStoredRows } from '../../src/warehouse/reads/stored-rows.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { askInTurn, erasureDone, takeBack as takeBackAs } from '../support/builders/learner-data.js';
import { auditsOf } from '../support/commands/audits.js';
import { runCommand } from '../support/commands/command.js';
import { type Caller, callerOf } from '../support/http/http.js';
import { tablesThatSay } from '../support/inspect/traces.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { askUntil, emptied } from '../support/wait.js';

const service = await startService({ after });
const redis = (await redisOf({ after }, service.redisUrl)) as Redis;
const clickhouse = clickhouseOf({ after }, service);
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);
const audit = auditsOf(redis, clickhouse);
const limit = { timeout: 600_000 };

const partition = (user: string, tenant = 'default'): number => partitionOf(tenant, user, 16);
const eventsOf = (user: string, n: number, name = 'e') =>
  Array.from({ length: n }, (_, i) => ({
    user_id: user,
    skill_id: `skill ${i % 2}`,
    is_correct: i % 3 > 0,
    event_id: `${name}${i}`,
    item_id: `item ${name} ${i}`,
    time_spent_seconds: 20 + i,
  }));
const takeBack = (user: string, eventId: string, as: Caller = caller) => takeBackAs(as, user, eventId);
const takenBack = async (user: string, eventId: string, as?: Caller): Promise<void> => {
  const { status, text } = await takeBack(user, eventId, as);
  assert.equal(status, 200, text);
};
const post = async (events: readonly object[], as: Caller = caller): Promise<void> => {
  const { status, text } = await as.trackAll(events);
  assert.equal(status, 200, text);
};
const erase = (user: string) => caller.call({ method: 'DELETE', path: `/api/v1/learners/${user}` });
const erased = (url: string) => erasureDone(caller, url);
const stored = (user: string, tenant?: string) => emptied(redis, outboxKey(partition(user, tenant)));
const noted = (user: string) => emptied(redis, `${partitionPrefix(partition(user))}:journal`);

/** Event ids of the learner's rows in order, which have no gaps and are what every rollup and Redis count. */
async function idsOf(user: string, tenant = 'default', as: Caller = caller): Promise<string[]> {
  const of = 'tenant = {tenant:String} AND user_id = {user:String}';
  const rows = await selectRows<{ id: string; seq: number; days: number }>(
    clickhouse,
    `SELECT event_id AS id, learner_seq AS seq,
      toUInt32((SELECT sum(attempts) FROM learner_skill_daily WHERE ${of})) AS days
     FROM attempts WHERE ${of} ORDER BY learner_seq`,
    { params: { user, tenant } },
  );
  assert.deepEqual(
    rows.map(({ seq, days }) => [seq, days]),
    rows.map((_, i) => [i + 1, rows.length]),
  );
  const { json } = await as.get(`/api/v1/mastery/${user}`);
  const counted = (json.data?.skills ?? []).reduce(
    (sum: number, skill: { total_attempts: number }) => sum + skill.total_attempts,
    0,
  );
  assert.equal(counted, rows.length);
  return rows.map(({ id }) => id);
}

const takenRows = (user: string) =>
  selectRows<{ id: string }>(
    clickhouse,
    'SELECT event_id AS id FROM taken_back FINAL WHERE user_id = {user:String} ORDER BY taken_back_at',
    { params: { user } },
  );

const nameOf = ({ event_id }: { readonly event_id: string }): string => event_id;

const pInit = 0.45;

/** Brings a model of the two skills into force. */
async function publish(tenant: string): Promise<void> {
  const fitted: SkillModel = {
    ...resolveSkillModel(unfittedModel, 'any'),
    parameters: { pInit, pLearn: 0.3, pGuess: 0.15, pSlip: 0.08, pForget: 0 },
    source: 'fitted',
    version: 1,
    fittedAt: '2026-01-15T12:00:00.000Z',
    learners: 230,
    answers: 4100,
    difficultyMean: 0,
    times: { answers: 4000, meanSeconds: 60, logMean: Math.log(50), logM2: 900, correct: 3000 },
  };
  const skills = new Map([0, 1].map((i) => [`skill ${i}`, fitted]));
  const model = encodeModel({ ...unfittedModel, version: 1, fittedAt: fitted.fittedAt, skills });
  const texts = { model, report: '{}', items: null };
  assert.ok(await publishModel(redis, { tenant, version: 1, basedOn: 0, publishedAt: Date.now(), ...texts }));
}

/** The thread of this partition looks for models by itself now and then; learners beside this one tell when it did. */
async function countsWithModel(as: Caller, user: string, tenant: string): Promise<void> {
  let tried = 0;
  const nextBeside = (): string => {
    do tried += 1;
    while (partition(`beside ${tried}`, tenant) !== partition(user, tenant));
    return `beside ${tried}`;
  };
  await askUntil(
    'the model',
    () => as.track({ user_id: nextBeside(), skill_id: 'skill 0', is_correct: true }),
    ({ json }) => json.data?.mastery_before === pInit,
  );
}

/** What tells under which model a row was counted and what it came to; without what its prediction came to. */
const countedRows = (tenant: string, user: string) =>
  selectRows<{ parameters_version: number }>(
    clickhouse,
    `SELECT event_id, learner_seq, parameters_version, p_init, p_learn, mastery_before, mastery_after, plateau_detected
     FROM attempts WHERE tenant = {tenant:String} AND user_id = {user:String} ORDER BY learner_seq`,
    { params: { tenant, user } },
  );

/** All wait for the pipeline. Ids are forgotten and a month is closed in partitions that no other learner here is in. */
describe('taking back', { concurrency: true }, () => {
  for (const isNoted of [true, false]) {
    test(
      `an erasure forgets the ids of answers taken back, ${isNoted ? 'stored' : 'on the way'}`,
      limit,
      async () => {
        const user = `erased-${isNoted}`;
        const events = eventsOf(user, 6);
        await post(events);
        await takenBack(user, 'e2');
        if (isNoted) await noted(user);
        const begun = await erase(user);
        assert.equal(begun.status, 202);
        await erased(begun.json.data.status_url);
        assert.deepEqual(await tablesThatSay(clickhouse, user), {});
        const { status, headers, json } = await caller.track(events[2]);
        assert.deepEqual(
          [status, headers['idempotent-replayed'], json.data.total_attempts],
          [200, undefined, 1],
        );
        await stored(user);
        assert.deepEqual(await idsOf(user), ['e2']);
      },
    );
  }

  test('what is taken back of a new history, while the old one is erased', limit, async () => {
    const user = 'begins-anew';
    await post(eventsOf(user, 8));
    const begun = await erase(user);
    const events = eventsOf(user, 5, 'new');
    await post(events);
    await takenBack(user, 'new3');
    assert.equal((await takeBack(user, 'e1')).json.error.code, 'NOT_FOUND', 'that history is over');
    await erased(begun.json.data.status_url);
    await stored(user);
    await noted(user);
    assert.deepEqual(await idsOf(user), ['new0', 'new1', 'new2', 'new4']);
    assert.deepEqual(await takenRows(user), [{ id: 'new3' }], 'a rebuild has to know that its id is taken');
    const { headers } = await caller.track(events[3]);
    assert.equal(headers['idempotent-replayed'], 'true');
  });

  test(
    'who has nothing left but an answer that was taken back is erased by way of a goal',
    limit,
    async () => {
      const user = 'nothing-left';
      await post(eventsOf(user, 1));
      await takenBack(user, 'e0');
      await stored(user);
      assert.equal((await erase(user)).status, 404);
      const body = '{"target_score":1200}';
      assert.equal((await caller.call({ method: 'PUT', path: `/api/v1/goals/${user}`, body })).status, 200);
      const begun = await erase(user);
      assert.equal(begun.status, 202);
      await erased(begun.json.data.status_url);
      assert.deepEqual(await tablesThatSay(clickhouse, user), {});
    },
  );

  test('several of one learner at once', limit, async () => {
    const user = 'at-once';
    const events = eventsOf(user, 40);
    await post(events);
    const ids = ['e0', 'e17', 'e18', 'e39'];
    const answers = await Promise.all(ids.map((id) => takeBack(user, id)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      ids.map(() => 200),
    );
    await stored(user);
    const left = events.map(nameOf).filter((id) => !ids.includes(id));
    assert.deepEqual(await idsOf(user), left);
    assert.equal(
      (await askInTurn(() => caller.get(`/api/v1/learners/${user}/attempts`))).json.data.total_attempts,
      left.length,
    );
  });

  test('its id, used for something else, used again, and used anew when it is forgotten', limit, async () => {
    const user = 'used-again';
    const events = eventsOf(user, 4);
    await post(events);
    await takenBack(user, 'e1');
    const other = await caller.track({ ...events[1], is_correct: false });
    assert.equal(other.json.error.code, 'IDEMPOTENCY_KEY_REUSED');
    const repeated = await caller.track(events[1]);
    assert.equal(repeated.headers['idempotent-replayed'], 'true');
    const inTwoDays = Math.ceil(Date.now() / 1000) + 2 * 86_400;
    assert.equal(
      await removeExpiredIds(redis, 1, eventIdsKey(partition(user), 'default', user), inTwoDays),
      4,
    );
    const anew = await caller.track(events[1]);
    assert.deepEqual([anew.headers['idempotent-replayed'], anew.json.data.total_attempts], [undefined, 2]);
    await stored(user);
    assert.deepEqual(await idsOf(user), ['e0', 'e2', 'e3', 'e1']);
    await takenBack(user, 'e1');
    await stored(user);
    await noted(user);
    assert.deepEqual(await idsOf(user), ['e0', 'e2', 'e3']);
    assert.deepEqual(await takenRows(user), [{ id: 'e1' }, { id: 'e1' }]);
  });

  test('refused rows: one that goes, and one that is written anew', limit, async () => {
    // In a partition without other learners of this file: an erasure that is due there would keep parked rows where they are.
    const user = 'refused-once';
    const parked = (): Promise<number> => redis.xlen(parkedKey(outboxKey(partition(user))));
    await clickhouse.command({
      query:
        'ALTER TABLE attempts ADD CONSTRAINT no CHECK time_spent_seconds IS NULL OR time_spent_seconds != 77',
    });
    const events = eventsOf(user, 6).map((event, i) =>
      i === 2 || i === 4 ? { ...event, time_spent_seconds: 77 } : event,
    );
    await post(events);
    await stored(user);
    assert.equal(await parked(), 2);
    await takenBack(user, 'e2');
    await takenBack(user, 'e0');
    await stored(user);
    assert.equal(await parked(), 1, 'it was refused again');
    await clickhouse.command({ query: 'ALTER TABLE attempts DROP CONSTRAINT no' });
    const { moved } = await redrive(redis, outboxKey(partition(user)));
    assert.equal(moved, 1);
    await stored(user);
    assert.deepEqual(await idsOf(user), ['e1', 'e3', 'e4', 'e5']);
  });

  test(
    'answers of an archived month stay, and so do younger ones that were written with one',
    limit,
    async () => {
      await awayFromMidnight();
      const user = 'fenced';
      const fence = archiveFenceKey(partition(user));
      const month = new Date().getUTCFullYear() * 100 + new Date().getUTCMonth() + 1;
      await post(eventsOf(user, 3));
      await redis.zadd(fence, month, 'month');
      const refused = await takeBack(user, 'e1');
      assert.deepEqual([refused.status, refused.json.error.code], [422, 'TOO_LATE']);
      await redis.zadd(fence, month - 1, 'month');
      await takenBack(user, 'e1');
      await redis.del(fence);
      await stored(user);
      assert.deepEqual(await idsOf(user), ['e0', 'e2']);
    },
  );

  test(
    'a model that came into force since: answers of before keep theirs, and chains hold',
    limit,
    async () => {
      const user = 'modelled';
      const callers: Caller[] = [];
      for (const tenant of ['with', 'without']) callers.push(callerOf(service, await keys.add({ tenant })));
      const events = [eventsOf(user, 12, 'a'), eventsOf(user, 12, 'b')] as const;
      for (const [i, as] of callers.entries()) {
        const tenant = i === 0 ? 'with' : 'without';
        await post(i === 0 ? events[0] : events[0].toSpliced(4, 1), as);
        await publish(tenant);
        await countsWithModel(as, user, tenant);
        await post(events[1], as);
      }
      const [as] = callers as [Caller];
      await takenBack(user, 'a4', as);
      for (const tenant of ['with', 'without']) await stored(user, tenant);
      const counted = await countedRows('with', user);
      assert.deepEqual(counted, await countedRows('without', user));
      assert.deepEqual([...new Set(counted.map(({ parameters_version }) => parameters_version))], [0, 1]);
      assert.equal((await idsOf(user, 'with', as)).length, 23);
    },
  );
});

test('in the end everything agrees', limit, async () => {
  const found = await audit();
  assert.deepEqual([found.mismatches, found.notCompared], [[], []]);
  const env = { DATA_DIR: service.dataDir, REDIS_URL: service.redisUrl };
  const verified = await runCommand('rebuild', env, '--verify', '--json');
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out);
});

test('rows that a snapshot has stay, and answers whose rows were dropped are not known', limit, async () => {
  const user = 'behind-a-snapshot';
  await post(eventsOf(user, 4));
  await stored(user);
  const rowsStored = createStoredRows(clickhouse, (_, work) => work());
  const replay = startReplay(null);
  const rows = (await rowsStored.readHistory('default', user, 2)).storedRows.split('\n').slice(0, 2);
  for (const row of rows) replay.add(decodeAttemptRow(row));
  const snapshot = {
    tenant: 'default',
    userId: user,
    partition: partition(user),
    learnerSeq: 2,
    state: encodeSnapshot(replay.states()),
  };
  await createAnswerArchive(clickhouse).saveSnapshots(202601, [snapshot]);
  await clickhouse.command({ query: `DELETE FROM attempts WHERE user_id = '${user}' AND learner_seq = 1` });
  const codeOf = async (id: string): Promise<string> => (await takeBack(user, id)).json.error?.code;
  assert.deepEqual([await codeOf('e0'), await codeOf('e1')], ['NOT_FOUND', 'TOO_LATE']);
  await takenBack(user, 'e2');
  assert.equal(await codeOf('e3'), 'TOO_LATE', 'the snapshot alone would be left');
});
