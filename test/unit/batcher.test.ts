import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Batcher, type BatcherOptions } from '../../src/compute/batcher.js';
import { ApiError } from '../../src/errors.js';

/** A batcher of texts whose batches wait until they are let go; texts of one first letter go together, `l` is large. */
function heldBatcher(change: Partial<BatcherOptions<string, string>> = {}) {
  const held: { items: readonly string[]; lane: number; letGo: (error?: Error) => void }[] = [];
  const run = (items: readonly string[], lane: number): Promise<readonly string[]> =>
    new Promise((resolve, reject) => {
      const done = items.map((item) => `${item}!`);
      held.push({ items, lane, letGo: (error) => (error ? reject(error) : resolve(done)) });
    });
  let lane: number | null = 0;
  const batcher = new Batcher<string, string>({
    lanes: 2,
    laneOf: () => lane,
    partsOf: () => assert.fail(),
    join: () => assert.fail(),
    beside: (away, item) => (away[0] === 'l') !== (item[0] === 'l'),
    together: (first, item) => first[0] === item[0],
    weightOf: (item) => item.length,
    maxBatch: { items: 3, weight: 100 },
    // Half of it for each tenant.
    maxWaiting: { items: 10, weight: 2000 },
    tenantOf: (item) => item.split('@')[1] ?? '',
    patience: { ms: 100, least: { items: 2, weight: 500 } },
    now: () => 0,
    refusal: 'full',
    run,
    ...change,
  });
  const told: string[] = [];
  const submit = (to: number, ...items: string[]): void => {
    lane = to;
    for (const item of items) {
      batcher.submit(item, (result) => {
        if (!(result instanceof Error)) told.push(result);
        else told.push(`${item}: ${result instanceof ApiError ? result.code : result.message}`);
      });
    }
  };
  const batches = () => held.map(({ items }) => items.join(' '));
  return { batcher, held, batches, told, submit };
}

test('what comes in one turn shares a batch, and the next batch waits for it', async () => {
  const { held, batches, submit, told } = heldBatcher();
  submit(0, 'a1', 'a2');
  await nextTurn();
  submit(0, 'a3', 'a4', 'a5', 'a6');
  await nextTurn();
  assert.deepEqual(batches(), ['a1 a2']);
  held[0]?.letGo();
  await nextTurn();
  assert.deepEqual(batches(), ['a1 a2', 'a3 a4 a5']);
  assert.deepEqual(told, ['a1!', 'a2!']);
});

test('beside one that is large go those of another tenant that are not', async () => {
  const { held, batches, submit, told } = heldBatcher();
  submit(0, 'l1@red');
  await nextTurn();
  submit(0, 'a1@red', 'l2@blue', 'a2@green');
  await nextTurn();
  assert.deepEqual(batches(), ['l1@red', 'a2@green'], 'not those of its tenant, nor another large one');
  submit(0, 'a3@green', 'a4@gold');
  await nextTurn();
  assert.equal(held.length, 2, 'of a kind one at a time');
  held[1]?.letGo();
  await nextTurn();
  assert.deepEqual(batches().slice(2), ['a4@gold a3@green']);
  held[0]?.letGo();
  await nextTurn();
  assert.deepEqual(batches().slice(3), ['l2@blue']);
  held[2]?.letGo();
  await nextTurn();
  assert.deepEqual(batches().slice(4), ['a1@red']);
  held[3]?.letGo();
  held[4]?.letGo();
  await nextTurn();
  assert.equal(told.length, 6);
});

test('it is full where every lane is, and no sooner', async () => {
  const { batcher, held, submit } = heldBatcher({ lanes: 2 });
  const fill = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8'];
  submit(0, ...fill);
  assert.equal(batcher.full(''), null);
  submit(1, ...fill);
  assert.equal(batcher.full('')?.code, 'UNAVAILABLE');
  await nextTurn();
  assert.equal(batcher.full(''), null, 'the first batches are away');
  submit(0, ...fill);
  submit(1, ...fill);
  assert.equal(batcher.full('')?.message, 'full');
  held[1]?.letGo();
  await nextTurn();
  assert.equal(batcher.full(''), null, 'one lane has room');
});

test('lanes do not wait for one another, and a batch is of what goes together', async () => {
  const { held, batches, submit } = heldBatcher();
  submit(0, 'a1', 'b1');
  submit(1, 'a2');
  await nextTurn();
  assert.deepEqual(batches(), ['a1', 'a2']);
  assert.deepEqual(
    held.map(({ lane }) => lane),
    [0, 1],
  );
  held[0]?.letGo();
  await nextTurn();
  assert.deepEqual(batches(), ['a1', 'a2', 'b1']);
});

test('a batch is bounded by weight too, but one item always goes', async () => {
  const { held, batches, submit } = heldBatcher({ maxBatch: { items: 9, weight: 5 } });
  submit(0, 'a1', 'a2', 'a3', 'a-very-long-one', 'a4');
  for (let i = 0; i < 4; i++) {
    await nextTurn();
    held[i]?.letGo();
  }
  await nextTurn();
  assert.deepEqual(batches(), ['a1 a2', 'a3', 'a-very-long-one', 'a4']);
});

test('a full lane refuses, by items and by weight, and a failed batch fails alone', async () => {
  const { held, submit, told } = heldBatcher({ maxWaiting: { items: 10, weight: 60 } });
  submit(0, 'a1');
  await nextTurn();
  submit(0, 'a2', 'a3', 'a4', 'a5', 'a6', 'a7');
  submit(1, 'x'.repeat(40));
  await nextTurn();
  submit(1, 'y'.repeat(40), 'y2');
  await nextTurn();
  assert.deepEqual(told, ['a7: UNAVAILABLE', 'y2: UNAVAILABLE']);
  held[0]?.letGo(new Error('broken'));
  await nextTurn();
  held[2]?.letGo();
  await nextTurn();
  assert.deepEqual(told.slice(2), ['a1: broken', 'a2!', 'a3!', 'a4!']);
});

test('tenants take turns, and what one of them sent keeps its order', async () => {
  const { held, batches, submit } = heldBatcher({
    together: () => true,
    maxBatch: { items: 2, weight: 100 },
  });
  submit(0, 'a1@big', 'a2@big', 'a3@big', 'a4@big', 'a5@big');
  await nextTurn();
  submit(0, 'b1@small', 'c1@other', 'b2@small', 'b3@small');
  for (let i = 0; i < 5; i++) {
    held[i]?.letGo();
    await nextTurn();
  }
  const gone = batches().join(' ').split(' ');
  assert.deepEqual(
    batches().slice(0, 3),
    ['a1@big a2@big', 'b1@small b2@small', 'c1@other a3@big'],
    'who was served least goes first',
  );
  for (const tenant of ['big', 'small'])
    assert.deepEqual(
      gone.filter((item) => item.endsWith(tenant)),
      gone.filter((item) => item.endsWith(tenant)).sort(),
    );
  assert.equal(gone.length, 9);
});

test('who was served much owes it still when its last item is gone', async () => {
  const { held, batches, submit } = heldBatcher({ maxBatch: { items: 2, weight: 100 } });
  submit(0, 'a1@other');
  await nextTurn();
  submit(0, 'a2@long-name', 'a3@long-name', 'a4@x', 'a5@x', 'a6@x');
  held[0]?.letGo();
  await nextTurn();
  submit(0, 'a7@long-name');
  for (const i of [1, 2, 3]) {
    held[i]?.letGo();
    await nextTurn();
  }
  assert.deepEqual(batches().slice(1), ['a2@long-name a3@long-name', 'a4@x a5@x', 'a6@x a7@long-name']);
});

test('a tenant alone never fills a lane', async () => {
  const { batcher, submit, told } = heldBatcher();
  submit(0, 'a1@big');
  submit(1, 'a1@big');
  await nextTurn();
  const many = Array.from({ length: 8 }, (_, i) => `a${i + 2}@big`);
  submit(0, ...many);
  submit(1, ...many);
  submit(0, 'a1@small');
  await nextTurn();
  assert.equal(told.length, 6, `${told}`);
  assert.ok(told.every((one) => one.endsWith('@big: UNAVAILABLE')));
  assert.equal(batcher.full('big')?.code, 'UNAVAILABLE');
  assert.equal(batcher.full('small'), null);
});

test('no tenant adds to a lane where its first item has waited for long, unless little waits there', async () => {
  let now = 0;
  const { held, submit, told } = heldBatcher({ maxBatch: { items: 1, weight: 100 }, now: () => now });
  submit(0, 'a1');
  await nextTurn();
  submit(0, 'a2');
  now = 101;
  submit(0, 'a3', 'a4');
  await nextTurn();
  assert.deepEqual(told, ['a4: UNAVAILABLE']);
  held[0]?.letGo();
  await nextTurn();
  // What waits now came a moment ago.
  submit(0, 'a5', 'a6');
  await nextTurn();
  now = 202;
  submit(0, 'a7');
  await nextTurn();
  assert.deepEqual(told, ['a4: UNAVAILABLE', 'a1!', 'a7: UNAVAILABLE']);
});

test('stopping refuses what waits and what comes, and tells what is away', async () => {
  const { batcher, held, submit, told } = heldBatcher();
  submit(0, 'a1');
  await nextTurn();
  submit(0, 'a2');
  batcher.stop();
  submit(0, 'a3');
  held[0]?.letGo();
  await nextTurn();
  assert.deepEqual(told, ['a2: UNAVAILABLE', 'a3: UNAVAILABLE', 'a1!']);
  assert.equal(batcher.waiting(), 0);
});

test('what was held back for other lanes goes when those that there are shall stay', async () => {
  const { batcher, held, batches, submit } = heldBatcher();
  submit(0, 'a1');
  submit(1, 'b1');
  await nextTurn();
  batcher.setLanes(3);
  submit(1, 'b2');
  held[1]?.letGo();
  await nextTurn();
  assert.deepEqual(batches(), ['a1', 'b1'], 'the first lane is not back yet');
  batcher.setLanes(2);
  await nextTurn();
  assert.deepEqual(batches(), ['a1', 'b1', 'b2']);
});
