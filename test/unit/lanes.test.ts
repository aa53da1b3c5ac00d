import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLanes, type LaneLimits } from '../../src/compute/lanes.js';
import type { EventsRequest } from '../../src/compute/track-task.js';
import {
  dataSeparator,
  outcomeLetters,
  type TrackReply,
  type TrackTask,
} from '../../src/contracts/answers/track-task.js';
import { ApiError } from '../../src/errors.js';

/** A request named by a text: `l` leads the name of a batch; the tenant stands behind `@`. */
const sentOf = (name: string, lane: number): EventsRequest => ({
  form: name[0] === 'l' ? 'batch' : 'event',
  tenant: name.split('@')[1] ?? '',
  body: Buffer.from(JSON.stringify({ user_id: `${lane}`, name })),
  idempotencyKey: null,
  receivedAt: 0,
});

const namesIn = ({ bodies }: TrackTask): string[] =>
  Buffer.from(bodies)
    .toString()
    .trimEnd()
    .split('\n')
    .map((body) => JSON.parse(body).name);

interface Change extends Partial<LaneLimits> {
  readonly count?: number;
  readonly now?: () => number;
}

/** Lanes whose tasks wait until they are let go. A request weighs 24 and its name. */
function heldLanes({ count = 2, now = () => 0, ...limits }: Change = {}) {
  const held: { names: readonly string[]; lane: number; letGo: (error?: Error) => void }[] = [];
  const run = (task: TrackTask, lane: number): Promise<TrackReply> =>
    new Promise((resolve, reject) => {
      const names = namesIn(task);
      const reply = {
        counts: names.map(() => 1),
        outcomes: outcomeLetters.counted.repeat(names.length),
        data: names.map((name) => `${name}!`).join(dataSeparator),
      };
      held.push({ names, lane, letGo: (error) => (error ? reject(error) : resolve(reply)) });
    });
  const lanes = createLanes({
    laneCount: count,
    findSlot: (_tenant, userId) => Number(userId),
    run,
    onFailure: () => assert.fail(),
    limits: {
      maxTaskSize: { items: 3, weight: 1000 },
      // Half of it for each tenant.
      maxQueueSize: { items: 10, weight: 500_000 },
      maxQueueWaitMs: 100,
      maxSlowQueueSize: { items: 2, weight: 500_000 },
      ...limits,
    },
    now,
  });
  const told: string[] = [];
  const submit = (to: number, ...names: string[]): void => {
    for (const name of names) {
      lanes.trackEvent(sentOf(name, to), (result) => {
        if (!(result instanceof Error)) told.push(result.data);
        else told.push(`${name}: ${result instanceof ApiError ? result.code : result.message}`);
      });
    }
  };
  const batches = () => held.map(({ names }) => names.join(' '));
  return { lanes, held, batches, told, submit };
}

test('what comes in one turn shares a batch, and the next batch waits for it', async () => {
  const { held, batches, submit, told } = heldLanes();
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

test('beside a batch go single answers of other tenants', async () => {
  const { held, batches, submit, told } = heldLanes({ count: 1 });
  submit(0, 'l1@red');
  await nextTurn();
  submit(0, 'a1@red', 'l2@blue', 'a2@green');
  await nextTurn();
  assert.deepEqual(batches(), ['l1@red', 'a2@green'], 'not those of its tenant, nor another batch');
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
  const { lanes, held, submit } = heldLanes();
  const fill = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8'];
  submit(0, ...fill);
  assert.equal(lanes.findOverload(''), null);
  submit(1, ...fill);
  assert.equal(lanes.findOverload('')?.code, 'UNAVAILABLE');
  await nextTurn();
  assert.equal(lanes.findOverload(''), null, 'the first batches are away');
  submit(0, ...fill);
  submit(1, ...fill);
  assert.equal(lanes.findOverload('')?.message, 'Too many answers wait to be counted; try again later');
  held[1]?.letGo();
  await nextTurn();
  assert.equal(lanes.findOverload(''), null, 'one lane has room');
});

test('lanes do not wait for one another, and a batch is of what goes together', async () => {
  const { held, batches, submit } = heldLanes();
  submit(0, 'a1');
  submit(1, 'a2');
  submit(0, 'l1');
  await nextTurn();
  assert.deepEqual(batches(), ['a1', 'a2']);
  assert.deepEqual(
    held.map(({ lane }) => lane),
    [0, 1],
  );
  held[0]?.letGo();
  await nextTurn();
  assert.deepEqual(batches(), ['a1', 'a2', 'l1']);
});

test('a batch is bounded by weight too, but one item always goes', async () => {
  const { held, batches, submit } = heldLanes({ maxTaskSize: { items: 9, weight: 55 } });
  submit(0, 'a1', 'a2', 'a3', 'a-very-long-one', 'a4');
  for (let i = 0; i < 4; i++) {
    await nextTurn();
    held[i]?.letGo();
  }
  await nextTurn();
  assert.deepEqual(batches(), ['a1 a2', 'a3', 'a-very-long-one', 'a4']);
});

test('a full lane refuses, by items and by weight, and a failed batch fails alone', async () => {
  const { held, submit, told } = heldLanes({ maxQueueSize: { items: 10, weight: 600 } });
  submit(0, 'a1');
  await nextTurn();
  submit(0, 'a2', 'a3', 'a4', 'a5', 'a6', 'a7');
  submit(1, 'x'.repeat(400));
  await nextTurn();
  submit(1, 'y'.repeat(400), 'y2');
  await nextTurn();
  assert.deepEqual(told, ['a7: UNAVAILABLE', 'y2: UNAVAILABLE']);
  held[0]?.letGo(new Error('broken'));
  await nextTurn();
  held[2]?.letGo();
  await nextTurn();
  assert.deepEqual(told.slice(2), ['a1: broken', 'a2!', 'a3!', 'a4!']);
});

test('tenants take turns, and what one of them sent keeps its order', async () => {
  const { held, batches, submit } = heldLanes({ maxTaskSize: { items: 2, weight: 1000 } });
  submit(0, 'a1@big', 'a2@big', 'a3@big', 'a4@big', 'a5@big');
  await nextTurn();
  submit(0, 'a6@small', 'a7@other', 'a8@small', 'a9@small');
  for (let i = 0; i < 5; i++) {
    held[i]?.letGo();
    await nextTurn();
  }
  const gone = batches().join(' ').split(' ');
  assert.deepEqual(
    batches().slice(0, 3),
    ['a1@big a2@big', 'a6@small a8@small', 'a7@other a3@big'],
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
  const { held, batches, submit } = heldLanes({ maxTaskSize: { items: 2, weight: 1000 } });
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
  const { lanes, submit, told } = heldLanes();
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
  assert.equal(lanes.findOverload('big')?.code, 'UNAVAILABLE');
  assert.equal(lanes.findOverload('small'), null);
});

test('no tenant adds to a lane where its first item has waited for long, unless little waits there', async () => {
  let now = 0;
  const { held, submit, told } = heldLanes({ maxTaskSize: { items: 1, weight: 1000 }, now: () => now });
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
  const { lanes, held, submit, told } = heldLanes();
  submit(0, 'a1');
  await nextTurn();
  submit(0, 'a2');
  lanes.stop();
  submit(0, 'a3');
  held[0]?.letGo();
  await nextTurn();
  assert.deepEqual(told, ['a2: UNAVAILABLE', 'a3: UNAVAILABLE', 'a1!']);
  assert.equal(lanes.countQueued(), 0);
});

test('what was held back for other lanes goes when those that there are shall stay', async () => {
  const { lanes, held, batches, submit } = heldLanes();
  submit(0, 'a1');
  submit(1, 'b1');
  await nextTurn();
  lanes.setLaneCount(3);
  submit(1, 'b2');
  held[1]?.letGo();
  await nextTurn();
  assert.deepEqual(batches(), ['a1', 'b1'], 'the first lane is not back yet');
  lanes.setLaneCount(2);
  await nextTurn();
  assert.deepEqual(batches(), ['a1', 'b1', 'b2']);
});
