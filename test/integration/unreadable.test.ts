/** Records in Redis that cannot be read: who asks for many gets the others, and is told. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { noKeyMessage, prepareKeys } from '../../src/app/startup/prepare-keys.js';
import { loadConfig } from '../../src/config.js';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { createLogger } from '../../src/logger.js';
import { createKeyStore } from '../../src/store/access/api-keys.js';
import { createCorrectionStore } from '../../src/store/corrections/corrections.js';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { describeDifference, readLearnerDumps } from '../../src/store/rebuild/learner-writes.js';
import {
  apiKeysKey,
  dueErasuresKey,
  erasuresKey,
  learnerKey,
  partitionOf,
} from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

async function connect(t: TestContext) {
  const redis = await redisOf(t, await startTestRedis(t));
  await openDeployment(redis, async () => false);
  return redis;
}

test('an API key that cannot be read hides no other, and stops no start', async (t) => {
  const redis = await connect(t);
  const key = {
    keyHash: 'a',
    tenant: 'x',
    requestsPerMinute: 5,
    scopes: ['read'],
    development: false,
  } as const;
  await createKeyStore(redis).save(key);
  await redis.hset(apiKeysKey, 'odd', '{"tenant":7}', 'torn', '{"tenant"');
  const told: string[] = [];
  const keys = await createKeyStore(redis, (_, field) => told.push(field)).listActive();
  assert.deepEqual([keys.map(({ keyHash }) => keyHash), told.sort()], [['a'], ['odd', 'torn']]);

  await redis.hdel(apiKeysKey, 'a');
  const config = loadConfig({ DATA_DIR: await tempDir(t) });
  const lines: string[] = [];
  const logger = createLogger('error', 'test', { write: (line) => lines.push(line) });
  assert.deepEqual(await prepareKeys(config, redis, logger), noKeyMessage, 'it may be in force');
  assert.equal(lines.filter((line) => line.includes('cannot be read')).length, 2);
});

test('an erasure that cannot be read does not hold up the others', async (t) => {
  const redis = await connect(t);
  const place = learnerKey(partitionOf('x', 'ada', 16), 'x', 'ada');
  await redis.hset(place, 'L', Buffer.alloc(198, 1));
  const begun = await createErasureStore(redis, 16).begin('x', 'ada');
  assert.equal(begun.status, 'begun');
  await redis.hset(erasuresKey(3), '3-odd', '{"v":2}');
  const told: string[] = [];
  const open = await createErasureStore(redis, 16, (_, id) => told.push(id)).open();
  assert.deepEqual([open.map(({ rows }) => rows.userId), told], [['ada'], ['3-odd']]);
});

test('a due erasure with an unreadable record stays due while the others are applied', async (t) => {
  const redis = await connect(t);
  const erasures = createErasureStore(redis, 1);
  const erase = async (userId: string): Promise<string> => {
    await redis.hset(learnerKey(0, 'x', userId), 'L', Buffer.alloc(198, 1));
    const begun = await erasures.begin('x', userId);
    assert.ok('id' in begun);
    return begun.id;
  };
  const [torn, whole] = [await erase('ada'), await erase('bob')];
  await redis.hset(erasuresKey(0), torn, '{"v":1');
  const found: string[] = [];
  const due = await createCorrectionStore(redis, (_, id) => found.push(id)).listDue(0);
  assert.deepEqual([due.map(({ text }) => text), found], [[whole], [torn]]);
  assert.equal(await redis.xlen(dueErasuresKey(0)), 2);
  await assert.rejects(createCorrectionStore(redis).listDue(0), /JSON/);
});

test('a comparison tells of a learner whose records cannot be read', async (t) => {
  const redis = await connect(t);
  const place = { partition: 1, tenant: 'x', userId: 'torn' };
  await redis.hset(learnerKey(1, 'x', 'torn'), 'L', 'zz');
  const [dump] = await readLearnerDumps(redis, [place]);
  const states = { learner: { ...newLearner, attempts: 1 }, skills: new Map(), items: new Map() };
  assert.match(describeDifference(states as never, dump ?? null) ?? '', /^cannot be read: record format 122/);
});
