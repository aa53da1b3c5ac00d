import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { encodeModel } from '../../src/contracts/models/stored-model.js';
import { type TenantModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { itemTermCount, skillTermCount } from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms } from '../../src/domain/prediction/related-terms.js';
import { createServedModels } from '../../src/store/catalogue/served-models.js';
import { addItemAnswers, readItems } from '../../src/store/models/item-store.js';
import { createModelStore, publishModel } from '../../src/store/models/model-store.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import {
  activeModelsKey,
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
        parameters: {
          pInit: 0.1 + 0.2,
          pLearn: 1 / 3,
          pGuess: 0.2,
          pSlip: 1 / 200,
          pForget: 1 / 300,
        },
        source: 'fitted',
        version,
        fittedAt: '2026-01-15T12:00:00.000Z',
        learners: 100,
        answers: 1000,
        difficultyMean: -0.125,
        times: { answers: 10, meanSeconds: 31.5, logMean: 3.2, logM2: 0.7, correct: 7 },
        terms: Array.from({ length: skillTermCount }, (_, i) => i / 3),
        related: { keys: [7, 4_000_000_000], terms: [0.1, -0.2, 0.3, 1 / 3, 0, -1.5] },
        abilityOffset: -0.7,
      },
    ],
  ]),
});

/** @returns the version, or null where another one came first */
async function publish(redis: RedisClient, tenant: string, basedOn: number): Promise<number | null> {
  const version = await publishOnly(redis, tenant, basedOn);
  if (version !== null) await createModelStore(redis).finishFit(tenant, `of version ${version}`);
  return version;
}

/** As a process that dies before it ends its fit. */
async function publishOnly(redis: RedisClient, tenant: string, basedOn: number): Promise<number | null> {
  const version = await createModelStore(redis).reserveVersion(tenant);
  const model = encodeModel(modelOf(version));
  const texts = { model, report: '{}', items: null, publishedAt: 1000 * version };
  return (await publishModel(redis, { tenant, version, basedOn, ...texts })) ? version : null;
}

test('published models', { timeout: 60_000 }, async (t) => {
  const url = await startTestRedis(t);
  const redis = await redisOf(t, url);
  const models = createModelStore(redis);

  await t.test('a version is read as it was published, and is listed', async () => {
    assert.equal(await models.fetchActiveVersion('list'), 0);
    assert.deepEqual(await models.read('list', 0), unfittedModel);
    assert.equal(await publish(redis, 'list', 0), 1);
    assert.equal(await publish(redis, 'list', 1), 2);
    assert.equal(await models.fetchActiveVersion('list'), 2);
    assert.deepEqual(await models.read('list', 2), modelOf(2));
    assert.deepEqual(await models.listVersions('list'), [
      { version: 2, basedOn: 1, publishedAt: 2000, inForce: true },
      { version: 1, basedOn: 0, publishedAt: 1000, inForce: false },
    ]);
    assert.ok((await models.listTenants()).includes('list'));
  });

  await t.test('of many that publish at once one wins, and nothing of the others is left', async (t) => {
    const clients = await Promise.all(Array.from({ length: 6 }, () => redisOf(t, url)));
    const won = (await Promise.all(clients.map((client) => publish(client, 'race', 0)))).filter(
      (version) => version !== null,
    );
    assert.equal(won.length, 1);
    assert.equal(await models.fetchActiveVersion('race'), won[0]);
    const keys = await redis.keys('st:{m:race}:[vi]:*');
    assert.deepEqual(
      new Set(keys),
      new Set([modelVersionKey('race', won[0] ?? 0), modelItemsKey('race', won[0] ?? 0)]),
    );
  });

  await t.test('an earlier version can be used again, as long as it is kept', async () => {
    for (let version = 0; version < 15; version++) await publish(redis, 'back', version);
    assert.equal(await models.activate('back', 14, 13), 'superseded');
    assert.equal(await models.activate('back', 14, 15), 'used');
    assert.equal(await models.fetchActiveVersion('back'), 14);
    assert.equal(await models.activate('back', 2, 14), 'not-kept');
    assert.equal(await models.activate('back', 0, 14), 'used');
    assert.equal(await publish(redis, 'back', 0), 16);
    assert.deepEqual(
      (await models.listVersions('back')).map(({ version }) => version),
      [16, 15, 14, 13, 12, 11, 10, 9, 8, 7],
    );
    const notified = (await redis.xrange(modelEventsKey, '-', '+')).map(
      ([, [, , , tenant, , , , body = '']]) => {
        const { type, data } = JSON.parse(body);
        return [tenant, type, data.version, data.based_on];
      },
    );
    assert.deepEqual(
      notified.filter(([tenant]) => tenant === 'back').slice(-4),
      [
        [15, 14],
        [14, 15],
        [0, 14],
        [16, 0],
      ].map((versions) => ['back', 'model.published', ...versions]),
    );
    const log = await models.listChangesAfter('back', 14);
    assert.deepEqual(
      log.map(({ change, version, basedOn, action }) => [change, version, basedOn, action]),
      [
        [15, 15, 14, 'fit'],
        [16, 14, 15, 'rollback'],
        [17, 0, 14, 'rollback'],
        [18, 16, 0, 'fit'],
      ],
    );
    assert.deepEqual(log.at(-1)?.model, encodeModel(modelOf(16)));
  });

  await t.test('a version that its successor is about to clear away is not used again', async () => {
    for (let version = 0; version < 11; version++) await publish(redis, 'late', version);
    // As after the step that brings version 11 into force.
    await redis.sadd('st:{m:late}:versions', 1);
    await redis.hset(modelVersionKey('late', 1), 'model', encodeModel(modelOf(1)));
    assert.equal(await models.activate('late', 1, 11), 'not-kept');
    assert.equal(await models.activate('late', 2, 11), 'used');
  });

  await t.test('all items go on, however many there are', async () => {
    const deltas = Array.from({ length: 5000 }, (_, i) => ({
      itemId: `item-${i}`,
      answers: i + 1,
      right: i,
      expected: i / 2,
    }));
    await addItemAnswers(redis, 'many', 0, deltas);
    await publish(redis, 'many', 0);
    const ids = deltas.map(({ itemId }) => itemId);
    assert.deepEqual(await readItems(redis, 'many', 1, ids), await readItems(redis, 'many', 0, ids));
  });

  await t.test('items go on with the next version, and are forgotten before the model is', async () => {
    const delta = { itemId: 'i', answers: 2, right: 1, expected: 1.25 };
    await addItemAnswers(redis, 'items', 0, [delta]);
    for (let version = 0; version < 4; version++) await publish(redis, 'items', version);
    const [item] = await readItems(redis, 'items', 4, ['i']);
    const none = { terms: noTerms, before: emptyRelatedTerms, abilityOffset: 0 };
    assert.deepEqual(item, { answers: 2, right: 1, expected: 1.25, ...none });
    assert.equal(await redis.exists(modelItemsKey('items', 1), modelItemsKey('items', 0)), 0);
    assert.equal(await models.activate('items', 1, 4), 'used');
    assert.deepEqual(await readItems(redis, 'items', 1, ['i']), [null]);
    assert.equal(await addItemAnswers(redis, 'items', 1, [delta]), 0);
  });

  await t.test('what processes left that died while they published is cleared away', async () => {
    await publish(redis, 'died', 0);
    const lost = await models.reserveVersion('died');
    await redis.sadd('st:{m:died}:versions', lost);
    await redis.hset(modelVersionKey('died', lost), 'model', 'half');
    assert.equal((await models.listVersions('died')).length, 1, 'it is not listed');
    assert.equal(await publishOnly(redis, 'died', 1), lost + 1);
    assert.equal(await redis.exists(modelVersionKey('died', lost)), 1);
    await models.finishFit('died', 'of the next fit, which found nothing better');
    assert.equal(await redis.exists(modelVersionKey('died', lost)), 0);
    assert.equal((await models.listVersions('died')).length, 2);
  });

  await t.test('the cache loads once, and takes up what is published', async (t) => {
    const cache = cacheOf(t, redis);
    const [first, second] = await Promise.all([cache.get('cached'), cache.get('cached')]);
    assert.equal(first, second, 'the same load');
    assert.deepEqual(first, unfittedModel);
    await publish(redis, 'cached', 0);
    await waitFor('version 1', async () => (await cache.get('cached')).version === 1, 10_000);
    assert.deepEqual(await cache.get('cached'), modelOf(1));
    await models.activate('cached', 0, 1);
    await waitFor('version 0', async () => (await cache.get('cached')).version === 0, 10_000);
  });

  await t.test('the cache keeps what it has while a newer one cannot be read', async (t) => {
    const unreadable: number[] = [];
    const cache = cacheOf(t, redis, ({ version }) => unreadable.push(version));
    await publish(redis, 'newer', 0);
    assert.equal((await cache.get('newer')).version, 1);
    await redis.hset(modelVersionKey('newer', 2), 'model', JSON.stringify({ format: 4 }));
    await redis.hset(activeModelsKey, 'newer', 2);
    await waitFor('the refusal', () => unreadable.length > 0, 10_000);
    assert.equal((await cache.get('newer')).version, 1);
    const fresh = cacheOf(t, redis, () => undefined);
    await assert.rejects(fresh.get('newer'), { code: 'UNAVAILABLE' });
    await models.activate('newer', 1, 2);
    assert.equal((await fresh.get('newer')).version, 1, 'the next use tries again');
    assert.deepEqual(unreadable, [2], 'told once');
  });

  await t.test('the cache forgets the tenant that was not used for longest', async (t) => {
    const cache = cacheOf(t, redis, undefined, 2);
    const loaded: TenantModel[] = [];
    for (const tenant of ['a', 'b', 'a', 'c']) loaded.push(await cache.get(tenant));
    assert.equal(await cache.get('a'), loaded[0]);
    assert.notEqual(await cache.get('b'), loaded[1]);
    assert.deepEqual(await cache.get('b'), loaded[1]);
  });
});

function cacheOf(
  t: TestContext,
  redis: RedisClient,
  error: (facts: { readonly err: unknown; readonly version: number }) => unknown = ({ err }) =>
    assert.ifError(err),
  maxTenants = 1000,
) {
  const cache = createServedModels(async () => redis, { error }, { pollMs: 50, maxTenants });
  t.after(() => cache.close());
  return cache;
}
