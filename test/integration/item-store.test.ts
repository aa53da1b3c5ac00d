import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { hashKey } from '../../src/domain/base/text-hash.js';
import { buildPairTable } from '../../src/domain/fit/prediction/pair-tables.js';
import { itemTermCount } from '../../src/domain/prediction/prediction-model.js';
import { emptyRelatedTerms } from '../../src/domain/prediction/related-terms.js';
import {
  addItemAnswers,
  createItemsHash,
  hashItem,
  type ItemDelta,
  maxItems,
  readItemFigures,
  readItems,
  storeItems,
} from '../../src/store/models/item-store.js';
import { modelItemsKey } from '../../src/store/redis/keys.js';
import { seeded } from '../support/builders/random.js';
import { redisOf, startBareRedis } from '../support/servers/service.js';

const none = new Array<number>(itemTermCount).fill(0);
const { url } = await startBareRedis({ after });
const redis = await redisOf({ after }, url);

test('addItemAnswers keeps exact sums when several connections add concurrently', async (t) => {
  const clients = await Promise.all([1, 2, 3, 4].map(() => redisOf(t, url)));
  const random = seeded(7);
  const items = Array.from({ length: 20 }, (_, i) => `item-${i}`);
  const sums = items.map(() => ({ answers: 0, right: 0, micro: 0 }));
  const flushes = Array.from({ length: 20 }, () =>
    items.map((itemId, i): ItemDelta => {
      const micro = Math.floor(random() * 3e6);
      const delta = { itemId, answers: 3, right: Math.floor(random() * 4), expected: micro / 1e6 };
      const sum = sums[i] as (typeof sums)[number];
      sum.answers += delta.answers;
      sum.right += delta.right;
      sum.micro += micro;
      return delta;
    }),
  );
  const uncounted = await Promise.all(
    flushes.map((deltas, i) => addItemAnswers(clients[i % clients.length] ?? redis, 'exact', 0, deltas)),
  );
  assert.equal(Math.max(...uncounted), 0);
  const found = (await readItems(redis, 'exact', 0, items)).map(
    (item) => item && { answers: item.answers, right: item.right, micro: Math.round(item.expected * 1e6) },
  );
  assert.deepEqual(found, sums);
});

test('readItems returns the counts of one version and tenant with the terms of its fit', async () => {
  const before = { keys: [hashKey('unknown')], terms: [0.75] };
  const fitted = { terms: none.map((_, i) => 0.5 * i - 0.25), before, abilityOffset: -1.5 };
  const items = {
    terms: Float32Array.from([...none, ...fitted.terms, ...none]),
    offsets: Float32Array.of(0, fitted.abilityOffset, 0),
    pairs: buildPairTable([emptyRelatedTerms, { keys: [2], terms: before.terms }, emptyRelatedTerms], 1),
    sums: {
      answers: Uint32Array.of(9, 5, 0),
      right: Uint32Array.of(9, 3, 0),
      expected: Float64Array.of(9, 2.5, 0),
    },
  };
  const hashes = Buffer.concat(['', 'known', 'unknown'].map(hashItem));
  await storeItems(redis, 'school', 4, { ...items, hashes });
  const delta = { itemId: 'known', answers: 1, right: 1, expected: 0.125 };
  assert.equal(await addItemAnswers(redis, 'school', 4, [delta, { ...delta, itemId: 'new' }]), 0);
  assert.deepEqual(await readItems(redis, 'school', 4, ['new', 'known', 'unknown']), [
    { answers: 1, right: 1, expected: 0.125, terms: none, before: emptyRelatedTerms, abilityOffset: 0 },
    { answers: 6, right: 4, expected: 2.625, ...fitted },
    null,
  ]);
  const { terms, offsets, pairs } = await readItemFigures(redis, 'school', 4, hashes);
  assert.deepEqual([terms, offsets, pairs], [items.terms, items.offsets, items.pairs]);
  assert.deepEqual(await readItems(redis, 'other', 4, ['known']), [null]);
  assert.deepEqual(await readItems(redis, 'school', 5, ['known']), [null]);
});

test('addItemAnswers writes nothing for a version without items', async () => {
  const delta = { itemId: 'late', answers: 1, right: 1, expected: 0.5 };
  assert.equal(await addItemAnswers(redis, 'school', 3, [delta]), 1);
  assert.equal(await redis.exists(modelItemsKey('school', 3)), 0);
  await createItemsHash(redis, 'school', 3);
  assert.equal(await addItemAnswers(redis, 'school', 3, [delta]), 0);
});

test('addItemAnswers counts known items, but no new ones at the limit of items', async () => {
  const key = modelItemsKey('full', 0);
  const chunk = 10_000;
  for (let i = 0; i < maxItems; i += chunk) {
    const script = `for i = ${i}, ${i + chunk - 1} do redis.call('HSET', KEYS[1], 'f' .. i, '') end`;
    await redis.eval(script, 1, key);
  }
  const delta = (itemId: string): ItemDelta => ({ itemId, answers: 1, right: 0, expected: 0.5 });
  assert.equal(await addItemAnswers(redis, 'full', 0, ['a', 'b', 'c', 'a'].map(delta)), 2);
  const [a, b] = await readItems(redis, 'full', 0, ['a', 'b']);
  assert.deepEqual([a?.answers, b], [2, null]);
});
