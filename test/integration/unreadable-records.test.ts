/** Records in Redis that cannot be read: readers of many records get the others. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { noKeyMessage, prepareKeys } from '../../src/app/startup/prepare-keys.js';
import { loadConfig } from '../../src/config.js';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { createLogger } from '../../src/logger.js';
import { createKeyStore } from '../../src/store/access/api-keys.js';
import { createCorrectionStore } from '../../src/store/corrections/corrections.js';
import { createErasureStore } from '../../src/store/corrections/erasures.js';
import { describeDifference, readLearnerDumps } from '../../src/store/rebuild/learner-writes.js';
import { apiKeysKey, dueErasuresKey, erasuresKey, learnerKey } from '../../src/store/redis/keys.js';
import { openDeployment } from '../../src/store/redis/server/deployment.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

const redis = await redisOf({ after }, await startTestRedis({ after }));

beforeEach(async () => {
  await redis.flushall();
  await openDeployment(redis, async () => false);
});

test('The key store reports unreadable keys and lists the others, and a startup logs them', async (t) => {
  const grant = { tenant: 'x', requestsPerMinute: 5, scopes: ['read'], development: false } as const;
  await createKeyStore(redis).save({ keyHash: 'a', ...grant });
  await redis.hset(apiKeysKey, 'odd', '{"tenant":7}', 'torn', '{"tenant"');
  const unreadable: string[] = [];
  const keys = await createKeyStore(redis, (_, field) => unreadable.push(field)).listActive();
  assert.deepEqual([keys.map(({ keyHash }) => keyHash), unreadable.sort()], [['a'], ['odd', 'torn']]);

  await redis.hdel(apiKeysKey, 'a');
  const config = loadConfig({ DATA_DIR: await tempDir(t) });
  const lines: string[] = [];
  const logger = createLogger('error', 'test', { write: (line) => lines.push(line) });
  assert.deepEqual(await prepareKeys(config, redis, logger), noKeyMessage, 'an unreadable key may be active');
  assert.equal(lines.filter((line) => line.includes('cannot read')).length, 2);
});

test('The stores of erasures report unreadable records, return the others, and keep all of them due', async () => {
  const unreadable: string[] = [];
  const report = (_: unknown, id: string) => unreadable.push(id);
  const erasures = createErasureStore(redis, 1, report);
  const erase = async (userId: string): Promise<string> => {
    await redis.hset(learnerKey(0, 'x', userId), 'L', Buffer.alloc(198, 1));
    const begun = await erasures.begin('x', userId, false);
    assert.ok('id' in begun);
    return begun.id;
  };
  const [torn, whole] = [await erase('ada'), await erase('bob')];
  await redis.hset(erasuresKey(0), torn, '{"v":1', '3-odd', '{"v":2}');
  const open = await erasures.open();
  assert.deepEqual([open.map(({ id }) => id), unreadable.sort()], [[whole], ['3-odd', torn].sort()]);
  const due = await createCorrectionStore(redis, report).listDue(0);
  assert.deepEqual([due.map(({ text }) => text), unreadable.at(-1)], [[whole], torn]);
  assert.equal(await redis.xlen(dueErasuresKey(0)), 2);
  await assert.rejects(createCorrectionStore(redis).listDue(0), /JSON/);
});

test('describeDifference names a learner record that cannot be read', async () => {
  const location = { partition: 1, tenant: 'x', userId: 'torn' };
  await redis.hset(learnerKey(1, 'x', 'torn'), 'L', 'zz');
  const [dump] = await readLearnerDumps(redis, [location]);
  const states = { learner: { ...newLearner, attempts: 1 }, skills: new Map(), items: new Map() };
  assert.match(
    describeDifference(states as never, dump ?? null) ?? '',
    /^is unreadable: unsupported record format 122/,
  );
});
