/** A Redis that another version of the service filled. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { indices } from '../../src/lists.js';
import { createRebuildStore } from '../../src/store/rebuild/rebuild-store.js';
import {
  eventIdsKey,
  itemTracesKey,
  learnerKey,
  markerKey,
  metaKey,
  outboxKey,
  partitionOf,
  stateVersion,
} from '../../src/store/redis/keys.js';
import { takeBack } from '../support/builders/learner-data.js';
import { runCommand } from '../support/commands/command.js';
import { callerOf } from '../support/http/http.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { redisOf, startBareRedis, startService } from '../support/servers/service.js';
import { emptied, waitFor } from '../support/wait.js';

const { url: redisUrl } = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl });
const redis = await redisOf({ after }, redisUrl);
const { clickhouseUrl } = service;
const env = { DATA_DIR: service.dataDir, REDIS_URL: redisUrl, CLICKHOUSE_URL: clickhouseUrl };
const run = (name: string, ...args: string[]) => runCommand(name, env, ...args);
const start = (t: Parameters<typeof startService>[0]) => startService(t, { redisUrl, clickhouseUrl });

const keptBefore = '4.1';

/** Marks the deployment as filled by another version of the service. */
async function makeOlder(): Promise<void> {
  for (const partition of indices(16))
    await redis.rename(markerKey(partition, stateVersion), markerKey(partition, keptBefore));
  await redis.hset(metaKey, 'model_version', keptBefore);
}

const [majorVersion = 0] = stateVersion.split('.').map(Number);
const refusalOf = (version: string): string =>
  `Redis has learners of version ${version}, but this version of the service needs version ${stateVersion}`;
const olderRefusal = new RegExp(
  `${refusalOf(keptBefore)}; start the previous .* and run npm run rebuild(?! --)`,
);
const older = { state: 'older', storedVersion: keptBefore, partitions: 16 } as const;
const users = Array.from({ length: 12 }, (_, i) => `learner ${i}`);
const retractedUser = 'learner 3';
const partitionOfUser = (user: string): number => partitionOf('default', user, 16);
const createEvents = (user_id: string) =>
  Array.from({ length: 12 }, (_, i) => ({
    ...{ user_id, skill_id: `skill ${i % 3}`, is_correct: i % 4 > 0, item_id: `item ${i % 5}` },
    event_id: i % 6 === 5 ? null : `event ${i}`,
  }));

type Dump = Map<string, string[]>;

/** The keys that a rebuild restores. */
const dumpLearners = async (): Promise<Dump> =>
  new Map([...(await dumpRedis(redis))].filter(([name]) => /:(l|h[01]|e|accepted):?/.test(name)));

/** A rebuild counts the stored answers as accepted, without the retracted answer that was accepted before. */
const withoutRetracted = (dump: Dump): Dump =>
  new Map([...dump].filter(([name]) => name !== `st:{p${partitionOfUser(retractedUser)}}:accepted`));

const results = new Map<string, { data: unknown }[]>();
let before: Dump = new Map();

/** Fills today's keys with records that no version can read. */
async function makeUnreadable(): Promise<void> {
  for (const user of users) {
    const partition = partitionOfUser(user);
    await redis.hset(learnerKey(partition, 'default', user), 'L', 'another layout', 'sgone', 'skill');
    await redis.hset(itemTracesKey(partition, 1, 'default', user), 'item', 'another layout');
    await redis.del(eventIdsKey(partition, 'default', user));
    await redis.hset(eventIdsKey(partition, 'default', user), 'id', 'another layout');
  }
}

test('The service and every command except a rebuild reject learners of an older version', async (t) => {
  const caller = callerOf(service, service.key);
  for (const user of users) {
    const { status, json } = await caller.trackAll(createEvents(user));
    assert.equal(status, 200);
    results.set(user, json.data.results);
  }
  const goal = { method: 'PUT', path: '/api/v1/goals/learner%200', body: '{"target_score":1200}' };
  assert.equal((await caller.call(goal)).status, 200);
  assert.equal((await takeBack(caller, retractedUser, 'event 10')).status, 200);
  for (const pattern of ['st:*:out', 'st:*:journal'])
    for (const key of await redis.keys(pattern)) await emptied(redis, key);
  before = await dumpLearners();
  await makeUnreadable();
  await makeOlder();
  const isReported = async () => olderRefusal.test(await (await fetch(`${service.baseUrl}/readyz`)).text());
  await waitFor('the running service to report it', isReported);
  assert.equal((await caller.track(createEvents('new')[0])).status, 503);
  await service.stop();
  await assert.rejects(start(t), olderRefusal);
  for (const [name = '', ...args] of [['rebuild', '--verify'], ['fit'], ['audit']]) {
    const { code, err } = await run(name, ...args);
    assert.notEqual(code, 0, name);
    assert.match(err, olderRefusal, name);
  }
});

test('The service and a rebuild reject learners of a newer version', async (t) => {
  for (const version of [`${majorVersion + 1}.1`, `${majorVersion}.10`]) {
    await redis.hset(metaKey, 'model_version', version);
    const newerRefusal = new RegExp(`${refusalOf(version)}; start the newer version`);
    assert.match((await run('rebuild')).err, newerRefusal);
    await assert.rejects(start(t), newerRefusal);
  }
  await redis.hset(metaKey, 'model_version', keptBefore);
});

test('A rebuild changes nothing if it would lose pending rows or learners', async () => {
  const store = createRebuildStore(redis);
  const markers = Array.from({ length: 16 }, (_, partition) => markerKey(partition, keptBefore));
  const hasMarkers = async () => (await redis.exists(...markers)) === markers.length;
  const dump = await dumpLearners();
  for (const wasKilled of [false, true]) {
    if (wasKilled) await store.moveMarkers(older, 'aside');
    assert.equal(await hasMarkers(), !wasKilled);
    const pending = await redis.xadd(outboxKey(3), '*', 'r', 'row');
    const { code, err } = await run('rebuild');
    assert.equal(code, 1);
    assert.match(err, /Redis has data that is not in ClickHouse: 1 in outboxes\. Start the previous version/);
    assert.ok(await hasMarkers(), 'the markers are lost');
    await redis.xdel(outboxKey(3), pending ?? '');
  }
  const unknown = learnerKey(5, 'default', 'unknown');
  await redis.hset(unknown, 'L', 'learner');
  assert.match((await run('rebuild')).err, /no answers of 1 learners in Redis \(default:unknown\)/);
  assert.ok(await hasMarkers());
  await redis.del(unknown);
  assert.deepEqual(await dumpLearners(), dump);
});

test('A rebuild restores learners and event ids, also after a run that was killed', async () => {
  const { code, out, err } = await run('rebuild', '--json');
  assert.deepEqual([code, err, JSON.parse(out).learners], [0, '', users.length]);
  assert.deepEqual(withoutRetracted(await dumpLearners()), withoutRetracted(before));
  assert.ok([...before.keys()].some((name) => name.endsWith(':accepted')));
  assert.deepEqual(await redis.keys('st:*:aside'), []);
  assert.equal(await redis.hget(metaKey, 'model_version'), stateVersion);
  assert.equal((await run('rebuild')).out, 'Nothing to restore\n');

  await makeUnreadable();
  await makeOlder();
  const store = createRebuildStore(redis);
  await store.moveMarkers(older, 'aside');
  await store.adoptVersion(older);
  assert.equal((await run('rebuild')).code, 0);
  assert.deepEqual(withoutRetracted(await dumpLearners()), withoutRetracted(before));
  const verified = await run('rebuild', '--verify', '--json');
  assert.deepEqual([verified.code, JSON.parse(verified.out).differences], [0, []], verified.out);
});

test('After a rebuild, event ids are replayed, also of retracted answers, and unreadable records stay', async (t) => {
  const restored = await start(t);
  const caller = callerOf(restored, restored.key);
  const [user = '', other = ''] = users;
  const key = learnerKey(partitionOfUser(user), 'default', user);
  const record = (await redis.hgetBuffer(key, 'L')) as Buffer;
  const unknownFormat = Buffer.concat([Buffer.of(255), record.subarray(1)]);
  await redis.hset(key, 'L', unknownFormat);
  const answer = { skill_id: 'skill 0', is_correct: true };
  assert.equal((await caller.track({ ...answer, user_id: user })).status, 500);
  assert.equal((await caller.track({ ...answer, user_id: other })).status, 200);
  assert.deepEqual(await redis.hgetBuffer(key, 'L'), unknownFormat);
  await redis.hset(key, 'L', record);

  for (const user of users) {
    const events = createEvents(user);
    const { json } = await caller.trackAll(events.filter(({ event_id }) => event_id !== null));
    const replays: { replayed?: true; data: unknown }[] = json.data.results;
    const expected = (results.get(user) ?? []).filter((_, i) => events[i]?.event_id !== null);
    assert.equal(replays.length, expected.length);
    for (const [i, { replayed, data }] of replays.entries()) {
      assert.ok(replayed, user);
      if (user !== retractedUser) assert.deepEqual(data, expected[i]?.data);
    }
  }
  const counted = await caller.track({ ...createEvents(retractedUser)[0], event_id: 'new' });
  assert.equal(counted.headers['idempotent-replayed'], undefined);
  assert.equal((await caller.get('/api/v1/goals/learner%200')).json.data.target_score, 1200);
});
