/** A Redis whose event ids stand with their partitions, as the version before left them: refused, and moved by a rebuild. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createReplaceStore } from '../../src/store/rebuild/replace-store.js';
import {
  asideKey,
  eventIdsKey,
  keptNow,
  learnerKey,
  markerKey,
  metaKey,
  outboxKey,
  partitionOf,
} from '../../src/store/redis/keys.js';
import { runCommand } from '../support/command.js';
import { callerOf, type JsonAnswer } from '../support/http.js';
import { erasureDone, takeBack } from '../support/learner-data.js';
import { exitAfterTests } from '../support/linger.js';
import { keptInFirstLayout, makeFirstLayout } from '../support/older-deployment.js';
import { dumpRedis } from '../support/redis-dump.js';
import { redisOf, startBareRedis, startService } from '../support/service.js';
import { waitFor } from '../support/wait.js';

const limit = { timeout: 600_000 };
const redisServer = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redisServer.url });
const redis = await redisOf({ after }, redisServer.url);
const { clickhouseUrl } = service;
// What is running no more cannot be joined.
const env = { DATA_DIR: service.dataDir, REDIS_URL: redisServer.url, CLICKHOUSE_URL: clickhouseUrl };
const run = (name: string, ...args: string[]) => runCommand(name, env, ...args);
exitAfterTests();

const { version, layout } = keptNow;
const sentence = new RegExp(
  `learners in layout 1, this version of the service keeps them in layout ${layout}: drain .*, then run npm run rebuild(?! --)`,
);
const users = Array.from({ length: 30 }, (_, i) => `learner ${i}`);
const [takenBackOf, erasedLater] = ['learner 3', 'learner 5'];
const answersOf = (user_id: string) =>
  Array.from({ length: 12 }, (_, i) => ({
    user_id,
    skill_id: `skill ${i % 3}`,
    is_correct: i % 4 > 0,
    item_id: `item ${i % 5}`,
    event_id: i % 6 === 5 ? null : `event ${i}`,
  }));

const idsOfFirstLayout = (): Promise<string[]> => redis.keys('st:{p*}:i:*');
const aside = (): Promise<string[]> => redis.keys(`st:v${version}:*`);
const keyOf = (of: typeof learnerKey, user: string): string =>
  of(partitionOf('default', user, 16), 'default', user);

/** Of what a rebuild is to restore. */
async function learnersDump(): Promise<Map<string, string[]>> {
  return new Map([...(await dumpRedis(redis))].filter(([name]) => /:(l|h[01]|e):/.test(name)));
}

async function drained(): Promise<void> {
  const lengths = async (): Promise<number[]> => {
    const keys = [...(await redis.keys('st:*:out')), ...(await redis.keys('st:*:journal'))];
    return Promise.all(keys.map((key) => redis.xlen(key)));
  };
  await waitFor('ClickHouse to have it all', async () => (await lengths()).every((n) => n === 0), 180_000);
}

const told = new Map<string, { data: unknown }[]>();
let before = new Map<string, string[]>();

test('a service refuses it, and so does every command but a rebuild', limit, async (t) => {
  const caller = callerOf(service, service.key);
  for (const user of users) {
    const { status, json } = await caller.trackAll(answersOf(user));
    assert.equal(status, 200);
    told.set(user, json.data.results);
  }
  assert.equal((await takeBack(caller, takenBackOf, 'event 10')).status, 200);
  await drained();
  before = await learnersDump();
  assert.equal([...before.keys()].filter((name) => name.includes(':e:')).length, users.length);
  await makeFirstLayout(redis);
  assert.ok((await idsOfFirstLayout()).length > 0);
  const readyz = async () => (await fetch(`${service.baseUrl}/readyz`)).text();
  await waitFor('a running service to tell', async () => sentence.test(await readyz()));
  assert.equal((await caller.track(answersOf('new')[0])).status, 503);
  await service.stop();
  await assert.rejects(startService(t, { redisUrl: redisServer.url, clickhouseUrl }), sentence);
  for (const [name, ...args] of [['rebuild', '--verify'], ['fit'], ['audit']]) {
    const { code, err } = await run(name as string, ...args);
    assert.deepEqual([code === 0, sentence.test(err)], [false, true], `${name} ${args}: ${err}`);
  }
});

test('a rebuild leaves it alone while anything waits in Redis', limit, async () => {
  const waiting = await redis.xadd(outboxKey(3), '*', 'r', 'row');
  const { code, err } = await run('rebuild');
  assert.equal(code, 1);
  assert.match(err, /Redis alone has 1 in outboxes: start the version before/);
  assert.equal(await redis.exists(markerKey(3, keptInFirstLayout)), 1, 'which finds all that it needs');
  assert.deepEqual(await aside(), []);
  assert.ok((await idsOfFirstLayout()).length > 0);
  await redis.xdel(outboxKey(3), waiting ?? '');
});

test('a rebuild moves learners aside and restores them with their ids', limit, async () => {
  const { code, out, err } = await run('rebuild');
  assert.deepEqual([code, err], [0, '']);
  assert.match(
    out,
    new RegExp(`keys of model version ${version}, layout 1 were moved to st:v${version}:\\*`),
  );
  assert.deepEqual(await idsOfFirstLayout(), []);
  assert.deepEqual(await learnersDump(), before);
  assert.equal(await redis.hget(metaKey, 'model_version'), `${version}.${layout}`);
  const moved = await aside();
  assert.ok(moved.includes(asideKey(keyOf(learnerKey, 'learner 0'), version)));
  for (const key of moved) assert.ok((await redis.ttl(key)) > 6 * 86_400, key);
  assert.equal((await run('rebuild')).out, 'nothing to restore\n');
  const verified = await run('rebuild', '--verify', '--json');
  assert.deepEqual([verified.code, JSON.parse(verified.out).differences], [0, []], verified.out);
});

test('a run that was killed in between is taken up by the next one', limit, async (t) => {
  await makeFirstLayout(redis);
  const replacing = createReplaceStore(redis, { ...keptInFirstLayout, partitions: 16 });
  await replacing.moveMarkers();
  await replacing.decide();
  const first = keyOf(learnerKey, 'learner 0');
  await redis.rename(first, asideKey(first, version));
  await assert.rejects(
    startService(t, { redisUrl: redisServer.url, clickhouseUrl }),
    /npm run rebuild did not come to its end, run it again/,
  );
  const { code, out, err } = await run('rebuild', '--json');
  assert.deepEqual([code, err], [0, ''], out);
  const { replaced, learners } = JSON.parse(out);
  assert.deepEqual(
    [replaced.model_version, replaced.layout, replaced.moved_to, learners],
    [version, 1, `st:v${version}:*`, users.length],
  );
  assert.deepEqual(await idsOfFirstLayout(), []);
  assert.deepEqual(await learnersDump(), before);
});

test('ids of before are known, of answers that were taken back too', limit, async (t) => {
  const again = await startService(t, { redisUrl: redisServer.url, clickhouseUrl });
  const caller = callerOf(again, again.key);
  for (const user of users) {
    const events = answersOf(user);
    const { json }: JsonAnswer = await caller.trackAll(events.filter(({ event_id }) => event_id !== null));
    assert.ok(
      json.data.results.every(({ replayed }: { replayed?: true }) => replayed),
      user,
    );
    if (user === takenBackOf) continue;
    const wanted = (told.get(user) ?? []).filter((_, i) => events[i]?.event_id !== null);
    assert.deepEqual(
      json.data.results.map(({ data }: { data: unknown }) => data),
      wanted.map(({ data }) => data),
    );
  }
  const counted = await caller.track({ ...answersOf(takenBackOf)[0], event_id: 'new' });
  assert.equal(counted.headers['idempotent-replayed'], undefined);
  const erase = { method: 'DELETE', path: `/api/v1/learners/${encodeURIComponent(erasedLater)}` } as const;
  const left = asideKey(keyOf(learnerKey, erasedLater), version);
  assert.equal(await redis.exists(left), 1);
  const begun = await caller.call(erase);
  assert.equal(begun.status, 202);
  assert.equal(await redis.exists(left, keyOf(eventIdsKey, erasedLater)), 0, 'in the same step');
  await erasureDone(caller, begun.json.data.status_url);
  const anew = await caller.track(answersOf(erasedLater)[0]);
  assert.deepEqual([anew.headers['idempotent-replayed'], anew.json.data.total_attempts], [undefined, 1]);
});
