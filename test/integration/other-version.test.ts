/** A Redis whose learners another version keeps: refused by all, and restored from ClickHouse by a rebuild. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
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
import { callerOf, type JsonAnswer } from '../support/http/http.js';
import { dumpRedis } from '../support/inspect/redis-dump.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { keptBefore, makeOlder } from '../support/servers/older-deployment.js';
import { redisOf, startBareRedis, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const limit = { timeout: 600_000 };
const redisServer = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redisServer.url });
const redis = await redisOf({ after }, redisServer.url);
const { clickhouseUrl } = service;
// What is running no more cannot be joined.
const env = { DATA_DIR: service.dataDir, REDIS_URL: redisServer.url, CLICKHOUSE_URL: clickhouseUrl };
const run = (name: string, ...args: string[]) => runCommand(name, env, ...args);
const start = (t: Parameters<typeof startService>[0]) =>
  startService(t, { redisUrl: redisServer.url, clickhouseUrl });
exitAfterTests();

const [version = 0] = stateVersion.split('.').map(Number);
const found = `Redis holds learners of version KEPT, this version of the service keeps version ${stateVersion}`;
const sentence = new RegExp(
  `${found.replace('KEPT', keptBefore)}: drain .*, then run npm run rebuild(?! --)`,
);
const users = Array.from({ length: 30 }, (_, i) => `learner ${i}`);
const [retractedOf] = ['learner 3'];
const answersOf = (user_id: string) =>
  Array.from({ length: 12 }, (_, i) => ({
    user_id,
    skill_id: `skill ${i % 3}`,
    is_correct: i % 4 > 0,
    item_id: `item ${i % 5}`,
    event_id: i % 6 === 5 ? null : `event ${i}`,
  }));

/** Of what a rebuild is to restore. */
async function learnersDump(): Promise<Map<string, string[]>> {
  return new Map([...(await dumpRedis(redis))].filter(([name]) => /:(l|h[01]|e|accepted):?/.test(name)));
}

async function drained(): Promise<void> {
  const lengths = async (): Promise<number[]> => {
    const keys = [...(await redis.keys('st:*:out')), ...(await redis.keys('st:*:journal'))];
    return Promise.all(keys.map((key) => redis.xlen(key)));
  };
  await waitFor('ClickHouse to have it all', async () => (await lengths()).every((n) => n === 0), 180_000);
}

const results = new Map<string, { data: unknown }[]>();
let before = new Map<string, string[]>();

/** Records that no version of today can read, under the names that today's have. */
async function makeUnreadable(): Promise<void> {
  for (const user of users) {
    const partition = partitionOf('default', user, 16);
    await redis.hset(learnerKey(partition, 'default', user), 'L', 'another layout', 'sgone', 'skill');
    await redis.hset(itemTracesKey(partition, 1, 'default', user), 'item', 'another layout');
    await redis.del(eventIdsKey(partition, 'default', user));
    await redis.hset(eventIdsKey(partition, 'default', user), 'id', 'another layout');
  }
}

test('a service refuses it, and so does every command but a rebuild', limit, async (t) => {
  const caller = callerOf(service, service.key);
  for (const user of users) {
    const { status, json } = await caller.trackAll(answersOf(user));
    assert.equal(status, 200);
    results.set(user, json.data.results);
  }
  const goal = { method: 'PUT', path: '/api/v1/goals/learner%200', body: '{"target_score":1200}' } as const;
  assert.equal((await caller.call(goal)).status, 200);
  assert.equal((await takeBack(caller, retractedOf as string, 'event 10')).status, 200);
  await drained();
  before = await learnersDump();
  await makeUnreadable();
  await makeOlder(redis);
  const readyz = async () => (await fetch(`${service.baseUrl}/readyz`)).text();
  await waitFor('a running service to say so', async () => sentence.test(await readyz()));
  assert.equal((await caller.track(answersOf('new')[0])).status, 503);
  await service.stop();
  await assert.rejects(start(t), sentence);
  for (const [name, ...args] of [['rebuild', '--verify'], ['fit'], ['audit']]) {
    const { code, err } = await run(name as string, ...args);
    assert.deepEqual([code === 0, sentence.test(err)], [false, true], `${name} ${args}: ${err}`);
  }
});

test('a newer one is refused by a rebuild too', limit, async (t) => {
  for (const kept of [`${version + 1}.1`, `${version}.10`]) {
    await redis.hset(metaKey, 'model_version', kept);
    const newer = new RegExp(`${found.replace('KEPT', kept)}: start the newer one`);
    assert.match((await run('rebuild')).err, newer);
    await assert.rejects(start(t), newer);
  }
  await redis.hset(metaKey, 'model_version', keptBefore);
});

test('a rebuild leaves it alone where anything would be lost', limit, async () => {
  const store = createRebuildStore(redis);
  const older = { state: 'older', storedVersion: keptBefore, partitions: 16 } as const;
  const marked = async () => (await redis.exists(...marks)) === marks.length;
  const marks = Array.from({ length: 16 }, (_, partition) => markerKey(partition, keptBefore));
  const now = await learnersDump();
  // As if a run was killed when the markers were moved, and somebody answered before.
  for (const whileMoved of [false, true]) {
    if (whileMoved) await store.moveMarkers(older, 'aside');
    assert.equal(await marked(), !whileMoved);
    const waiting = await redis.xadd(outboxKey(3), '*', 'r', 'row');
    const { code, err } = await run('rebuild');
    assert.deepEqual(
      [code, /Redis alone has 1 in outboxes: start the version before/.test(err)],
      [1, true],
      err,
    );
    assert.ok(await marked(), 'which finds all that it needs');
    await redis.xdel(outboxKey(3), waiting ?? '');
  }
  await redis.hset(learnerKey(5, 'default', 'nobody'), 'L', 'learner');
  assert.match((await run('rebuild')).err, /no answers of 1 learners of Redis \(default:nobody\)/);
  assert.ok(await marked());
  await redis.del(learnerKey(5, 'default', 'nobody'));
  assert.deepEqual(await learnersDump(), now);
});

test('a rebuild restores learners with their ids, wherever an earlier run was killed', limit, async () => {
  const { code, out, err } = await run('rebuild', '--json');
  assert.deepEqual([code, err, JSON.parse(out).learners], [0, '', users.length]);
  const accepted = (dump: Map<string, string[]>) => [...dump].filter(([name]) => name.endsWith(':accepted'));
  assert.deepEqual(await learnersDump().then(withoutRetracted), withoutRetracted(before));
  assert.ok(accepted(before).length > 0);
  assert.deepEqual(await redis.keys('st:*:aside'), []);
  assert.equal(await redis.hget(metaKey, 'model_version'), stateVersion);
  assert.equal((await run('rebuild')).out, 'nothing to restore\n');

  await makeUnreadable();
  await makeOlder(redis);
  const store = createRebuildStore(redis);
  const older = { state: 'older', storedVersion: keptBefore, partitions: 16 } as const;
  await store.moveMarkers(older, 'aside');
  await store.adoptVersion(older);
  assert.equal((await run('rebuild')).code, 0);
  assert.deepEqual(await learnersDump().then(withoutRetracted), withoutRetracted(before));
  const verified = await run('rebuild', '--verify', '--json');
  assert.deepEqual([verified.code, JSON.parse(verified.out).differences], [0, []], verified.out);
});

/** A rebuild counts as accepted what is stored; before, the retracted answer is among them and among the removed. */
function withoutRetracted(dump: Map<string, string[]>): Map<string, string[]> {
  const partition = partitionOf('default', retractedOf as string, 16);
  return new Map([...dump].filter(([name]) => name !== `st:{p${partition}}:accepted`));
}

test(
  'a record of an unknown format is rejected and left as it is, and other learners go on',
  limit,
  async (t) => {
    const again = await start(t);
    const caller = callerOf(again, again.key);
    const [user = '', other = ''] = users;
    const key = learnerKey(partitionOf('default', user, 16), 'default', user);
    const current = (await redis.hgetBuffer(key, 'L')) as Buffer;
    const unknown = Buffer.from(current);
    unknown[0] = 255;
    await redis.hset(key, 'L', unknown);
    const answer = { skill_id: 'skill 0', is_correct: true };
    assert.equal((await caller.track({ ...answer, user_id: user })).status, 500);
    assert.equal((await caller.track({ ...answer, user_id: other })).status, 200);
    assert.deepEqual(await redis.hgetBuffer(key, 'L'), unknown);
    await redis.hset(key, 'L', current);
  },
);

test('ids of before are known, of retracted answers too', limit, async (t) => {
  const again = await start(t);
  const caller = callerOf(again, again.key);
  for (const user of users) {
    const events = answersOf(user);
    const { json }: JsonAnswer = await caller.trackAll(events.filter(({ event_id }) => event_id !== null));
    assert.ok(
      json.data.results.every(({ replayed }: { replayed?: true }) => replayed),
      user,
    );
    if (user === retractedOf) continue;
    const wanted = (results.get(user) ?? []).filter((_, i) => events[i]?.event_id !== null);
    assert.deepEqual(
      json.data.results.map(({ data }: { data: unknown }) => data),
      wanted.map(({ data }) => data),
    );
  }
  const counted = await caller.track({ ...answersOf(retractedOf as string)[0], event_id: 'new' });
  assert.equal(counted.headers['idempotent-replayed'], undefined);
  assert.equal((await caller.get('/api/v1/goals/learner%200')).json.data.target_score, 1200);
});
