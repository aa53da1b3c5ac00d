/** Lanes with workers that count nothing: each task waits until the test completes it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { createLaneScaler } from '../../src/compute/compute.js';
import { createLanes, type LaneLimits } from '../../src/compute/lanes.js';
import type { EventsRequest } from '../../src/compute/track-task.js';
import {
  dataSeparator,
  type EventOutcome,
  type EventsFormat,
  outcomeLetters,
  type TrackReply,
  type TrackTask,
  unreadableCount,
} from '../../src/contracts/answers/track-task.js';
import { ApiError, countingError } from '../../src/errors.js';
import { seeded } from '../support/builders/random.js';

/** The last character of a learner's name is the slot. */
const findSlot = (_tenant: string, userId: string): number => Number(userId.at(-1));

const requestOf = (form: EventsFormat, body: unknown, tenant = 'default'): EventsRequest => ({
  form,
  tenant,
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  idempotencyKey: null,
  receivedAt: 0,
});

/** @param name `learner` or `learner@tenant` */
function single(name: string): EventsRequest {
  const [user_id, tenant] = name.split('@');
  return requestOf('event', { user_id }, tenant);
}

/** Events of learners; `bad` is an invalid event, `defect` one that fails. */
const batch = (names: string, tenant?: string): EventsRequest =>
  requestOf(
    'batch',
    names.split(' ').map((user_id) => ({ user_id })),
    tenant,
  );

function bodiesOf({ bodies, lengths }: TrackTask): string[] {
  let at = 0;
  return lengths.map((length) => {
    const body = Buffer.from(bodies).toString('utf8', at, at + length);
    at += length + 1;
    assert.equal(bodies[at - 1], 0x0a);
    return body;
  });
}

type Outcome = readonly [letter: string, data: string];

/** The first lane reports invalid events; other events belong to the lane of their learner. */
function outcomeOf({ form, slots }: TrackTask, lane: number, name: string): Outcome {
  const slot = name === 'bad' || name === 'defect' ? 0 : findSlot('', name);
  if (form === 'batch' && (slots & (1 << slot)) === 0) return [outcomeLetters.elsewhere, ''];
  if (name === 'defect') return [outcomeLetters.failed, 'the cause'];
  if (name === 'bad') return [outcomeLetters.invalid, '{"message":"bad","details":[]}'];
  return [outcomeLetters.counted, `${name} in ${lane}`];
}

const namesIn = (body: string): string[] => [JSON.parse(body)].flat().map(({ user_id }) => user_id);

function replyTo(task: TrackTask, lane: number): TrackReply {
  const outcomes: Outcome[] = [];
  const counts = bodiesOf(task).map((body) => {
    if (body === '?') {
      outcomes.push([outcomeLetters.invalid, '{"message":"unreadable","details":[]}']);
      return unreadableCount;
    }
    const names = namesIn(body);
    outcomes.push(...names.map((name) => outcomeOf(task, lane, name)));
    return names.length;
  });
  const data = outcomes.map(([, text]) => text).join(dataSeparator);
  return { counts, outcomes: outcomes.map(([letter]) => letter).join(''), data };
}

interface HeldTask {
  readonly task: TrackTask;
  readonly lane: number;
  readonly complete: (error?: Error) => void;
}

/** Accepts three requests per task and ten per queue, five of a tenant. */
const smallLimits: LaneLimits = {
  maxTaskSize: { items: 3, weight: 1e6 },
  maxQueueSize: { items: 10, weight: 1e6 },
  maxQueueWaitMs: 100,
  maxSlowQueueSize: { items: 2, weight: 1e6 },
};

interface Change extends Partial<LaneLimits> {
  readonly laneCount?: number;
  readonly now?: () => number;
}

function holdTasks({ laneCount = 3, now = () => 0, ...limits }: Change = {}, useDefaults = false) {
  const held: HeldTask[] = [];
  const failures: string[] = [];
  const results: string[] = [];
  const run = (task: TrackTask, lane: number): Promise<TrackReply> =>
    new Promise((resolve, reject) => {
      const complete = (error?: Error): void => (error ? reject(error) : resolve(replyTo(task, lane)));
      held.push({ task, lane, complete });
    });
  const lanes = createLanes({
    ...{ laneCount, findSlot, run, now },
    ...(!useDefaults && { limits: { ...smallLimits, ...limits } }),
    onFailure: (error) => failures.push(`${error}`),
  });
  const describeTask = ({ task, lane }: HeldTask): string => {
    const names = bodiesOf(task).map((body) => (body === '?' ? body : namesIn(body).join('+')));
    return `${lane}: ${names.join(' ')}`;
  };
  return {
    lanes,
    held,
    failures,
    /** Outcomes of single answers in the order of their arrival. */
    results,
    tasks: (from = 0) => held.slice(from).map(describeTask),
    /** Submits single answers in one turn of the event loop. */
    submit: async (names: string): Promise<void> => {
      for (const name of names.split(' '))
        lanes.trackEvent(single(name), (outcome) => {
          if (!(outcome instanceof Error)) results.push(outcome.data);
          else results.push(`${name}: ${outcome instanceof ApiError ? outcome.code : outcome.message}`);
        });
      await nextTurn();
    },
    complete: async (index: number, error?: Error): Promise<void> => {
      held[index]?.complete(error);
      await nextTurn();
    },
    /** Also tasks that start while it runs. */
    completeAll: async (): Promise<void> => {
      for (let done = 0; done < held.length; await nextTurn()) held[done++]?.complete();
    },
  };
}

const outcomesOf = (outcomes: readonly EventOutcome[]): string[] =>
  outcomes.map(({ outcome, data }) => (outcome === 'counted' ? data : outcome));
const isUnavailable = (error: unknown): boolean => error instanceof ApiError && error.code === 'UNAVAILABLE';

test('Lanes send a single answer to the lane of its learner, and an unreadable body to lane 0', async () => {
  const { lanes, tasks, submit, results, completeAll } = holdTasks();
  const unreadable = assert.rejects(lanes.track(requestOf('event', '?'), null), /unreadable/);
  await submit('ann1 bob2 cid1');
  assert.deepEqual(tasks().sort(), ['0: ?', '1: ann1 cid1', '2: bob2']);
  await completeAll();
  await unreadable;
  assert.deepEqual(results.sort(), ['ann1 in 1', 'bob2 in 2', 'cid1 in 1']);
});

test('A lane collects answers of one turn in a task, starts the next task after it, and rejects only failed ones', async () => {
  const { tasks, submit, results, complete } = holdTasks();
  await submit('a0 b0');
  await submit('c0 d0 e0 f0 g1');
  assert.deepEqual(tasks(), ['0: a0 b0', '1: g1'], 'lanes do not wait for each other');
  await complete(0);
  assert.deepEqual(tasks(2), ['0: c0 d0 e0']);
  assert.deepEqual(results, ['a0 in 0', 'b0 in 0']);
  await complete(2, new Error('broken'));
  await complete(3);
  assert.deepEqual(results.slice(2), ['c0: broken', 'd0: broken', 'e0: broken', 'f0 in 0']);
});

test('Lanes split a batch by learner and join the outcomes in the order of its events', async () => {
  const { lanes, held, failures, completeAll } = holdTasks();
  const tracked = lanes.track(batch('a2 bad b0 c1 a2 defect defect'), null);
  await nextTurn();
  const slots = held.map(({ task }) => task.slots);
  assert.deepEqual(slots, [0b1001001001001001, 0b0010010010010010, 0b0100100100100100]);
  await completeAll();
  const outcomes = outcomesOf(await tracked).join(', ');
  assert.equal(outcomes, 'a2 in 2, invalid, b0 in 0, c1 in 1, a2 in 2, failed, failed');
  assert.deepEqual(failures, ['Error: the cause'], 'the log gets the cause once');
});

test('Lanes reject an unreadable batch and count the other batches of its task', async () => {
  const { lanes, tasks, completeAll } = holdTasks();
  const [first, unreadable, last] = [batch('a0'), requestOf('batch', '?'), batch('b1')].map((request) =>
    lanes.track(request, null),
  );
  const rejected = assert.rejects(unreadable as Promise<unknown>, {
    code: 'INVALID_REQUEST',
    message: 'unreadable',
  });
  await nextTurn();
  assert.deepEqual(tasks(), ['0: a0 ? b1', '1: a0 ? b1', '2: a0 ? b1']);
  await completeAll();
  await rejected;
  assert.deepEqual(outcomesOf(await (first ?? [])), ['a0 in 0']);
  assert.deepEqual(outcomesOf(await (last ?? [])), ['b1 in 1']);
});

test("Lanes keep the order of a learner's single answers and batches", async () => {
  const { lanes, tasks, completeAll } = holdTasks();
  const sent = [single('a1'), batch('a1 b2'), single('a1'), single('a1'), batch('a1')];
  const tracked = sent.map((request) => lanes.track(request, null));
  await nextTurn();
  await completeAll();
  await Promise.all(tracked);
  const ofLane1 = tasks().filter((task) => task.startsWith('1'));
  assert.deepEqual(ofLane1, ['1: a1', '1: a1+b2', '1: a1 a1', '1: a1']);
});

test('A lane runs single answers of other tenants next to a batch', async () => {
  const { lanes, held, tasks, submit, complete } = holdTasks({ laneCount: 1 });
  const track = (names: string, tenant: string) => lanes.track(batch(names, tenant), null);
  const red = track('a0', 'red');
  await nextTurn();
  const blue = track('b0', 'blue');
  await submit('c0@red d0@green');
  assert.deepEqual(tasks(), ['0: a0', '0: d0'], 'neither its own tenant nor another batch');
  await submit('e0@green f0@gold');
  assert.equal(held.length, 2, 'one task of a kind at a time');
  await complete(1);
  assert.deepEqual(tasks(2), ['0: f0 e0']);
  await complete(0);
  await red;
  assert.deepEqual(tasks(3), ['0: b0']);
  await complete(2);
  assert.deepEqual(tasks(4), ['0: c0']);
  await complete(3);
  await blue;
});

test('A lane limits a task by weight and to four batches, and runs a larger request alone', async () => {
  const weight = 2 * JSON.stringify({ user_id: 'a0' }).length;
  const { tasks, submit, completeAll } = holdTasks({ maxTaskSize: { items: 9, weight } });
  await submit('a0 b0 c0 a-very-long-name-of-a-learner0 d0');
  await completeAll();
  assert.deepEqual(tasks(), ['0: a0 b0', '0: c0', '0: a-very-long-name-of-a-learner0', '0: d0']);

  // Each short batch can have a thousand errors.
  const short = holdTasks({ laneCount: 1 }, true);
  const tracked = Array.from({ length: 9 }, () => short.lanes.track(batch('a1'), null));
  await nextTurn();
  await short.completeAll();
  await Promise.all(tracked);
  assert.deepEqual(short.tasks(), ['0: a1 a1 a1 a1', '0: a1 a1 a1 a1', '0: a1']);
});

test('Lanes run a request of an import as a separate task, in the lane of its learners', async () => {
  const { lanes, tasks, completeAll } = holdTasks();
  const tracked = ['a2', 'b2'].map((userId) =>
    lanes.track(requestOf('import', [{ userId, user_id: userId }]), 'import-1'),
  );
  await nextTurn();
  await completeAll();
  await Promise.all(tracked);
  assert.deepEqual(tasks(), ['2: a2', '2: b2']);
});

test('A lane gives each tenant half of its queue and reports an overload when every lane is full', async () => {
  const { lanes, submit, results, complete } = holdTasks({ laneCount: 2 });
  await submit('a0@big a1@big');
  await submit('b0@big c0@big d0@big e0@big f0@big g0@big b1@big c1@big d1@big e1@big');
  assert.equal(lanes.findOverload('big'), null);
  await submit('f1@big g1@big h1@small');
  assert.deepEqual(results, ['g0@big: UNAVAILABLE', 'g1@big: UNAVAILABLE']);
  assert.equal(lanes.findOverload('big')?.code, 'UNAVAILABLE');
  assert.equal(lanes.findOverload('big')?.message, 'The answer queue is full; retry later.');
  assert.equal(lanes.findOverload('small'), null);
  await complete(1);
  assert.equal(lanes.findOverload('big'), null, 'one lane accepts answers again');
});

test('A lane accepts the requests of all tenants up to its limits of items and weight', async () => {
  const weight = 10 * JSON.stringify({ user_id: 'a0' }).length;
  for (const change of [{ items: 10 }, { weight }]) {
    const limit = { items: 1000, weight: 1e6, ...change };
    const { submit, results } = holdTasks({ maxQueueSize: limit });
    await submit('a0');
    await submit('b0@x c0@x d0@x e0@x f0@x g0@x b0@y c0@y d0@y e0@y f0@y g0@z');
    assert.deepEqual(results, ['g0@x: UNAVAILABLE', 'g0@z: UNAVAILABLE'], JSON.stringify(limit));
  }
});

test('Lanes accept 1,000 answers of a tenant that wait for long, and 5,000 that do not', async () => {
  let now = 0;
  const { lanes, submit, completeAll } = holdTasks({ laneCount: 1, now: () => now }, true);
  await submit('a0');
  const fill = (count: number): Promise<unknown>[] =>
    Array.from({ length: count }, () => lanes.track(single('a0'), null));
  const waiting = fill(999);
  now = 60_000;
  waiting.push(...fill(1));
  await assert.rejects(lanes.track(single('a0'), null), isUnavailable);
  now = 1000;
  waiting.push(...fill(4000));
  await assert.rejects(lanes.track(single('a0'), null), isUnavailable);
  assert.equal(lanes.countQueued(), 5000);
  await completeAll();
  await Promise.all(waiting);
  assert.equal(lanes.countQueued(), 0);
});

test('A lane whose oldest answer of a tenant waits too long accepts few more of this tenant', async () => {
  let now = 0;
  const { submit, results, complete } = holdTasks({
    maxTaskSize: { items: 1, weight: 1e6 },
    now: () => now,
  });
  await submit('a0');
  await submit('b0');
  now = 101;
  await submit('c0 d0');
  assert.deepEqual(results, ['d0: UNAVAILABLE']);
  await complete(0);
  await submit('e0 f0');
  now = 201;
  await submit('g0');
  assert.deepEqual(results.slice(1), ['a0 in 0'], 'the oldest answer now waits for 100 ms, which is allowed');
  now = 202;
  await submit('h0');
  assert.deepEqual(results.slice(2), ['h0: UNAVAILABLE']);
});

test('Lanes reject the events of a full or failed lane and count those of the others', async () => {
  const { lanes, held, submit, completeAll } = holdTasks();
  await submit('a1');
  await submit('b1 c1 d1 e1 f1');
  const first = lanes.track(batch('a1 b2 c0'), null);
  await nextTurn();
  await completeAll();
  const outcomes = await first;
  assert.deepEqual(outcomesOf(outcomes), ['unavailable', 'b2 in 2', 'c0 in 0']);
  assert.match(outcomes[0]?.data ?? '', /retry/);

  const second = lanes.track(batch('a1 b2'), null);
  await nextTurn();
  for (const { lane, complete: end } of held.slice(-3)) end(lane === 1 ? countingError() : undefined);
  assert.deepEqual(outcomesOf(await second), ['unavailable', 'b2 in 2']);

  const third = assert.rejects(lanes.track(batch('a1 b2'), null), { code: 'INTERNAL' });
  await nextTurn();
  for (const { complete: end } of held.slice(-3)) end(countingError());
  await third;
});

test('Tenants take turns in a lane, and the answers of each stay in order', async () => {
  const { tasks, submit, completeAll } = holdTasks({ maxTaskSize: { items: 2, weight: 1e6 } });
  await submit('a0@big b0@big c0@big d0@big e0@big');
  await submit('f0@small g0@other h0@small i0@small');
  await completeAll();
  assert.deepEqual(tasks(), ['0: a0 b0', '0: f0 h0', '0: g0 c0', '0: i0 d0', '0: e0']);
});

test('A tenant that was served more than others waits for them although its queue was empty', async () => {
  const { tasks, submit, complete, completeAll } = holdTasks({ maxTaskSize: { items: 2, weight: 1e6 } });
  await submit('a0@other');
  await submit('long-b0@served long-c0@served d0@x e0@x f0@x');
  await complete(0);
  await submit('g0@served');
  await completeAll();
  assert.deepEqual(tasks(1), ['0: long-b0 long-c0', '0: d0 e0', '0: f0 g0']);
});

test('Lanes that stop reject queued and new requests, and complete those in flight', async () => {
  const { lanes, submit, results, complete } = holdTasks();
  await submit('a0');
  await submit('b0');
  lanes.stop();
  await submit('c0');
  await assert.rejects(lanes.track(batch('a1 b2'), null), isUnavailable);
  await complete(0);
  assert.deepEqual(results, ['b0: UNAVAILABLE', 'c0: UNAVAILABLE', 'a0 in 0']);
  assert.equal(lanes.countQueued(), 0);
});

test('Lanes apply a new count when no task is in flight, and join parts of both counts', async () => {
  const { lanes, held, tasks, completeAll } = holdTasks({ laneCount: 1 });
  const first = lanes.track(batch('a0 b1'), null);
  await nextTurn();
  const second = lanes.track(batch('a0 b1 c0'), null);
  lanes.setLaneCount(2);
  await nextTurn();
  assert.deepEqual(tasks(), ['0: a0+b1'], 'the second batch waits for the first');
  held[0]?.complete();
  await nextTurn();
  await nextTurn();
  assert.deepEqual(tasks(1), ['0: a0+b1+c0', '1: a0+b1+c0']);
  held[2]?.complete(countingError());
  await completeAll();
  assert.deepEqual(outcomesOf(await first), ['a0 in 0', 'b1 in 0']);
  assert.deepEqual(outcomesOf(await second), ['a0 in 0', 'unavailable', 'c0 in 0']);
});

test('Lanes dispatch queued answers when a change of their count is reverted', async () => {
  const { lanes, tasks, submit, complete } = holdTasks({ laneCount: 2 });
  await submit('a0 b1');
  lanes.setLaneCount(3);
  await submit('c1');
  await complete(1);
  assert.deepEqual(tasks(2), [], 'lane 0 is still in flight');
  lanes.setLaneCount(2);
  await nextTurn();
  assert.deepEqual(tasks(2), ['1: c1']);
});

/**
 * Workers whose tasks complete in any order. A name is the place of the event in the sequence of all events, and its
 * learner: `17:u4`.
 * @throws AssertionError if an answer of a learner starts before an earlier one completes, or twice
 */
function orderedWorkers(random: () => number) {
  const lastPlace = new Map<string, number>();
  const inFlight = new Set<string>();
  const usedLanes = new Set<number>();
  const run = async (task: TrackTask, lane: number): Promise<TrackReply> => {
    usedLanes.add(lane);
    const events = bodiesOf(task)
      .flatMap(namesIn)
      .filter((name) => outcomeOf(task, lane, name)[0] === outcomeLetters.counted)
      .map((name) => name.split(':') as [place: string, learner: string]);
    const learners = new Set(events.map(([, learner]) => learner));
    for (const learner of learners) assert.ok(!inFlight.has(learner), `${learner} is in flight`);
    for (const learner of learners) inFlight.add(learner);
    for (const [place, learner] of events) {
      assert.ok((lastPlace.get(learner) ?? -1) < Number(place), `${learner}: ${place} is out of order`);
      lastPlace.set(learner, Number(place));
    }
    await sleep(Math.floor(3 * random()));
    for (const learner of learners) inFlight.delete(learner);
    return replyTo(task, lane);
  };
  return { run, usedLanes };
}

test('Lanes count each answer once and in order while their number changes under load', async () => {
  const random = seeded(7);
  const { run, usedLanes } = orderedWorkers(random);
  const lanes = createLanes({ laneCount: 1, findSlot, run, onFailure: () => assert.fail() });
  let place = 0;
  const tracked: Promise<void>[] = [];
  const send = (): void => {
    // Every third answer is one of the same learner.
    const nextName = (): string => `${place++}:u${random() < 0.3 ? 4 : Math.floor(10 * random())}`;
    const isSingle = random() < 0.5;
    const names = Array.from({ length: isSingle ? 1 : 1 + Math.floor(5 * random()) }, nextName);
    const request = isSingle ? single(names.join()) : batch(names.join(' '));
    const check = (outcomes: readonly EventOutcome[]): void => {
      const counted = outcomesOf(outcomes).map((data) => data.split(' ')[0]);
      assert.deepEqual(counted, names);
    };
    tracked.push(lanes.track(request, null).then(check));
  };
  for (let i = 0; i < 80; i++) {
    for (let n = 0; n < 5; n++) send();
    if (i % 3 === 0) lanes.setLaneCount(1 + ((i / 3) % 4));
    do await nextTurn();
    while (lanes.countQueued() > 50);
  }
  await Promise.all(tracked);
  assert.deepEqual([...usedLanes].sort(), [0, 1, 2, 3]);
  assert.equal(lanes.countQueued(), 0);
});

test('The lane scaler adds a lane when all threads are busy, and removes one after ten quiet samples', () => {
  const grow = createLaneScaler(3);
  const steps = [[0.89], [0.95], [0.95, 0.8], [0.95, 0.9], [1, 1, 1]].map((loads) => grow(loads));
  assert.deepEqual(steps, [1, 2, 2, 3, 3], 'up to the maximum');
  const scale = createLaneScaler(3);
  const quiet = Array.from({ length: 9 }, () => [0.3, 0.25]);
  scale([0.95]);
  for (const loads of [...quiet, [0.4, 0.3], ...quiet]) assert.equal(scale(loads), 2);
  assert.equal(scale([0.3, 0.25]), 1);
  for (let sample = 1; sample < 20; sample++) assert.equal(scale([0]), 1);
});
