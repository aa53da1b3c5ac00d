/** Published models in Redis, and the cache of them in each process. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import { type TenantModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { itemTermCount, skillTermCount } from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms } from '../../src/domain/prediction/related-terms.js';
import { indices } from '../../src/lists.js';
import { createServedModels } from '../../src/store/catalogue/served-models.js';
import { saveCalibration } from '../../src/store/models/calibration-store.js';
import { addItemAnswers, readItems } from '../../src/store/models/item-store.js';
import { createModelStore, publishModel } from '../../src/store/models/model-store.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import {
  activeModelsKey,
  calibratedTenantsKey,
  calibrationKey,
  modelEventsKey,
  modelItemsKey,
  modelVersionKey,
} from '../../src/store/redis/keys.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const noTerms = new Array<number>(itemTermCount).fill(0);

const modelOf = (version: number): TenantModel => ({
  ...unfittedModel,
  version,
  fittedAt: '2026-01-15T12:00:00.000Z',
  prior: { pInit: 0.4, pLearn: 0.2, pGuess: 0.15, pSlip: 0.05 + version / 1000, pForget: 0.01 },
  skills: new Map([
    [
      '__proto__ \u2028 ü',
      {
        parameters: { pInit: 0.1 + 0.2, pLearn: 1 / 3, pGuess: 0.2, pSlip: 1 / 200, pForget: 1 / 300 },
        source: 'fitted',
        version,
        fittedAt: '2026-01-15T12:00:00.000Z',
        learners: 100,
        answers: 1000,
        difficultyMean: -0.125,
        times: { answers: 10, meanSeconds: 31.5, logMean: 3.2, logM2: 0.7, correct: 7 },
        terms: indices(skillTermCount).map((i) => i / 3),
        related: { keys: [7, 4_000_000_000], terms: [0.1, -0.2, 0.3, 1 / 3, 0, -1.5] },
        abilityOffset: -0.7,
      },
    ],
  ]),
});

const url = await startTestRedis({ after });
const redis = await redisOf({ after }, url);
const models = createModelStore(redis);

/** Publishes like a process that dies before it ends its fit. @returns null if another version was published first */
async function publishOnly(tenant: string, basedOn: number, by: RedisClient = redis): Promise<number | null> {
  const version = await models.reserveVersion(tenant);
  const model = encodeModel(modelOf(version));
  const texts = { model, report: '{}', items: null, publishedAt: 1000 * version };
  return (await publishModel(by, { tenant, version, basedOn, ...texts })) ? version : null;
}

async function publish(tenant: string, basedOn: number, by: RedisClient = redis): Promise<number | null> {
  const version = await publishOnly(tenant, basedOn, by);
  if (version !== null) await models.finishFit(tenant, `of version ${version}`);
  return version;
}

const publishVersions = async (tenant: string, count: number): Promise<void> => {
  for (let version = 0; version < count; version++) await publish(tenant, version);
};

test('ModelStore reads a version exactly as it was published and lists it', async () => {
  assert.equal(await models.fetchActiveVersion('list'), 0);
  assert.deepEqual(await models.read('list', 0), unfittedModel);
  await publishVersions('list', 2);
  assert.equal(await models.fetchActiveVersion('list'), 2);
  assert.deepEqual(await models.read('list', 2), modelOf(2));
  assert.deepEqual(await models.listVersions('list'), [
    { version: 2, basedOn: 1, publishedAt: 2000, inForce: true },
    { version: 1, basedOn: 0, publishedAt: 1000, inForce: false },
  ]);
  assert.ok((await models.listTenants()).includes('list'));
});

test('ModelStore publishes one of several concurrent versions and removes the others', async (t) => {
  const clients = await Promise.all(indices(6).map(() => redisOf(t, url)));
  const versions = await Promise.all(clients.map((client) => publish('race', 0, client)));
  const [version, ...others] = versions.filter((one) => one !== null);
  assert.ok(version !== undefined && others.length === 0, versions.join());
  assert.equal(await models.fetchActiveVersion('race'), version);
  const keys = await redis.keys('st:{m:race}:[vi]:*');
  assert.deepEqual(keys.sort(), [modelItemsKey('race', version), modelVersionKey('race', version)]);
});

test('ModelStore activates an earlier version if it is retained, with a log and webhook events', async () => {
  await publishVersions('back', 15);
  assert.equal(await models.activate('back', 14, 13), 'superseded');
  assert.equal(await models.activate('back', 14, 15), 'used');
  assert.equal(await models.fetchActiveVersion('back'), 14);
  assert.equal(await models.activate('back', 2, 14), 'not-kept');
  assert.equal(await models.activate('back', 0, 14), 'used');
  assert.equal(await publish('back', 0), 16);
  const versions = (await models.listVersions('back')).map(({ version }) => version);
  assert.deepEqual(versions, [16, 15, 14, 13, 12, 11, 10, 9, 8, 7]);
  const changes = [
    [15, 15, 14, 'fit'],
    [16, 14, 15, 'rollback'],
    [17, 0, 14, 'rollback'],
    [18, 16, 0, 'fit'],
  ];
  const log = await models.listChangesAfter('back', 14);
  const logged = log.map(({ change, version, basedOn, action }) => [change, version, basedOn, action]);
  assert.deepEqual(logged, changes);
  assert.deepEqual(log.at(-1)?.model, encodeModel(modelOf(16)));
  const events = (await redis.xrange(modelEventsKey, '-', '+'))
    .filter(([, fields]) => fields[3] === 'back')
    .map(([, fields]) => JSON.parse(fields[7] ?? ''));
  const last = events.slice(-4).map(({ type, data }) => [type, data.version, data.based_on]);
  const expected = changes.map(([, version, basedOn]) => ['model.published', version, basedOn]);
  assert.deepEqual(last, expected);
});

test('ModelStore does not activate a version that its successor is about to remove', async () => {
  await publishVersions('late', 11);
  // As after the step that activates version 11.
  await redis.sadd('st:{m:late}:versions', 1);
  await redis.hset(modelVersionKey('late', 1), 'model', encodeModel(modelOf(1)));
  assert.equal(await models.activate('late', 1, 11), 'not-kept');
  assert.equal(await models.activate('late', 2, 11), 'used');
});

test('ModelStore copies all items to the next version and removes the items of old versions', async () => {
  const itemIds = indices(5000).map((i) => `item-${i}`);
  const deltas = itemIds.map((itemId, i) => ({ itemId, answers: i + 1, right: i, expected: i / 4 }));
  await addItemAnswers(redis, 'items', 0, deltas);
  await publishVersions('items', 4);
  const fields = { terms: noTerms, before: emptyRelatedTerms, abilityOffset: 0 };
  const copied = deltas.map(({ itemId: _, ...sums }) => ({ ...sums, ...fields }));
  assert.deepEqual(await readItems(redis, 'items', 4, itemIds), copied);
  assert.equal(await redis.exists(modelItemsKey('items', 1), modelItemsKey('items', 0)), 0);
  assert.equal(await models.activate('items', 1, 4), 'used');
  assert.deepEqual(await readItems(redis, 'items', 1, ['item-0']), [null]);
  assert.equal(await addItemAnswers(redis, 'items', 1, deltas.slice(0, 1)), 0);
});

test('ModelStore removes what a process left that died while publishing', async () => {
  await publish('died', 0);
  const lost = await models.reserveVersion('died');
  await redis.sadd('st:{m:died}:versions', lost);
  await redis.hset(modelVersionKey('died', lost), 'model', 'half');
  assert.equal((await models.listVersions('died')).length, 1, 'the unfinished version is not listed');
  assert.equal(await publishOnly('died', 1), lost + 1);
  assert.equal(await redis.exists(modelVersionKey('died', lost)), 1);
  await models.finishFit('died', 'of the next fit, which published nothing');
  assert.equal(await redis.exists(modelVersionKey('died', lost)), 0);
  assert.equal((await models.listVersions('died')).length, 2);
});

type OnError = Parameters<typeof createServedModels>[1]['error'];
const openCache = (t: TestContext, error: OnError = ({ err }) => assert.ifError(err), maxTenants = 1000) => {
  const cache = createServedModels(async () => redis, { error }, { pollMs: 50, maxTenants });
  t.after(() => cache.close());
  return cache;
};

test('ServedModels keeps its last readable version if a newer one is unreadable', async (t) => {
  const unreadable: unknown[] = [];
  const cache = openCache(t, ({ version }) => unreadable.push(version));
  await publish('newer', 0);
  assert.equal((await cache.get('newer')).version, 1);
  await redis.hset(modelVersionKey('newer', 2), 'model', JSON.stringify({ format: 4 }));
  await redis.hset(activeModelsKey, 'newer', 2);
  await waitFor('an error', () => unreadable.length > 0);
  assert.equal((await cache.get('newer')).version, 1);
  const fresh = openCache(t, () => undefined);
  await assert.rejects(fresh.get('newer'), { code: 'UNAVAILABLE' });
  await models.activate('newer', 1, 2);
  assert.equal((await fresh.get('newer')).version, 1, 'the next read tries again');
  assert.deepEqual(unreadable, [2], 'logged once');
});

test('ServedModels applies the current calibration, unless it is unreadable or of other intervals', async (t) => {
  const errors: unknown[] = [];
  const onError: OnError = ({ tenant }) => errors.push(tenant);
  const cache = openCache(t, onError);
  const calibrationOf = (at: number) => ({
    ...{ at, outcomes: 300, learners: 30, histories: [0], horizons: [1, 2] },
    cells: [
      { below: 1.5, above: 1.2 },
      { below: at, above: 1.1 },
    ],
  });
  const loaded = async () => (await cache.get('calibrated')).accuracy.calibration ?? null;
  assert.equal(await loaded(), null);
  for (const at of [1, 2]) {
    await saveCalibration(redis, 'calibrated', calibrationOf(at));
    await waitFor('the calibration', async () => (await loaded())?.at === at);
    assert.deepEqual(await loaded(), { v: 1, isFitted: false, ...calibrationOf(at) });
  }
  await publish('calibrated', 0);
  await waitFor('the version', async () => (await cache.version('calibrated')) === 1);
  assert.deepEqual(
    await loaded(),
    { v: 1, isFitted: false, ...calibrationOf(2) },
    'a new version retains the calibration',
  );
  assert.equal(await cache.get('calibrated'), await cache.get('calibrated'));
  await saveCalibration(redis, 'calibrated', calibrationOf(3), true);
  await waitFor('the removal', async () => (await loaded()) === null);
  assert.deepEqual(errors, []);
  await assert.rejects(saveCalibration(redis, 'calibrated', { ...calibrationOf(4), cells: [] }));
  await redis.set(calibrationKey('calibrated'), '{"v":2}');
  await redis.hset(calibratedTenantsKey, 'calibrated', 4);
  await waitFor('an error', () => errors.length > 0);
  assert.equal(await loaded(), null);
  const fresh = openCache(t, onError);
  assert.equal((await fresh.get('calibrated')).accuracy.calibration ?? null, null);
  await fresh.get('calibrated');
  assert.deepEqual(errors, ['calibrated', 'calibrated'], 'logged once per process');
});

test('ServedModels evicts the least recently used tenant from a full cache', async (t) => {
  const cache = openCache(t, undefined, 2);
  const loaded: TenantModel[] = [];
  for (const tenant of ['a', 'b', 'a', 'c']) loaded.push(await cache.get(tenant));
  assert.equal(await cache.get('a'), loaded[0]);
  assert.notEqual(await cache.get('b'), loaded[1]);
  assert.deepEqual(await cache.get('b'), loaded[1]);
});
