/** How submissions go through several lanes, with workers that count nothing but tell what they were handed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { createLanes } from '../../src/compute/lanes.js';
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

const laneCount = 3;
/** A learner's slot is the digit that the name ends with. */
const findSlot = (_tenant: string, userId: string): number => Number(userId.at(-1));
/** No import. */
const live = null;

type Event = { readonly user_id: string } | 'bad' | 'defect';

const submissionOf = (form: EventsFormat, body: unknown): EventsRequest => ({
  form,
  tenant: 'default',
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  idempotencyKey: null,
  receivedAt: 0,
});
const single = (userId: string) => submissionOf('event', { user_id: userId });
const batch = (...events: Event[]) => submissionOf('batch', events);
const by = (user_id: string): Event => ({ user_id });

function bodiesOf({ bodies, lengths }: TrackTask): string[] {
  let at = 0;
  return lengths.map((length) => {
    const body = Buffer.from(bodies).toString('utf8', at, at + length);
    at += length + 1;
    assert.equal(bodies[at - 1], 0x0a);
    return body;
  });
}

/** As a worker tells it: what is no event is told by the first lane, a learner's by the learner's lane. */
function tell(
  { form, slots }: TrackTask,
  lane: number,
  event: Event,
): readonly [letter: string, data: string] {
  const slot = typeof event === 'string' ? 0 : findSlot('', event.user_id);
  if (form === 'batch' && (slots & (1 << slot)) === 0) return [outcomeLetters.elsewhere, ''];
  if (event === 'defect') return [outcomeLetters.failed, 'the cause'];
  if (event === 'bad') return [outcomeLetters.invalid, '{"message":"bad","details":[]}'];
  return [outcomeLetters.counted, `${event.user_id}@${lane}`];
}

function replyTo(task: TrackTask, lane: number): TrackReply {
  const told: (readonly [string, string])[] = [];
  const counts = bodiesOf(task).map((body) => {
    if (body === '?') {
      told.push([outcomeLetters.invalid, '{"message":"unreadable","details":[]}']);
      return unreadableCount;
    }
    const events: Event[] = [JSON.parse(body)].flat();
    told.push(...events.map((event) => tell(task, lane, event)));
    return events.length;
  });
  const outcomes = told.map(([letter]) => letter).join('');
  return { counts, outcomes, data: told.map(([, data]) => data).join(dataSeparator) };
}

/** A tracker whose tasks wait until they are let go. */
function heldTracker() {
  const held: { task: TrackTask; lane: number; bodies: string[]; letGo: (error?: Error) => void }[] = [];
  const failures: unknown[] = [];
  const run = (task: TrackTask, lane: number): Promise<TrackReply> =>
    new Promise((resolve, reject) => {
      const letGo = (error?: Error): void => (error ? reject(error) : resolve(replyTo(task, lane)));
      held.push({ task, lane, bodies: bodiesOf(task), letGo });
    });
  // A clock that shows an order and no time: on a busy machine thousands of requests take more than a second.
  let time = 0;
  const now = (): number => time++ / 1e6;
  const tracker = createLanes({ laneCount, findSlot, run, now, onFailure: (error) => failures.push(error) });
  const tasks = () => held.map(({ lane, bodies }) => `${lane}: ${bodies.join(' ')}`);
  const letAllGo = async (): Promise<void> => {
    for (let done = 0; done < held.length; await nextTurn()) held[done++]?.letGo();
  };
  return { tracker, held, tasks, failures, letAllGo };
}

const isUnavailable = (error: unknown): boolean => error instanceof ApiError && error.code === 'UNAVAILABLE';

test('a single answer goes through the lane of its learner alone; what cannot be read through the first', async () => {
  const { tracker, tasks, letAllGo } = heldTracker();
  const told = ['ann1', 'bob2', 'cid1'].map((userId) => tracker.track(single(userId), live));
  const bad = tracker.track(submissionOf('event', '?'), live);
  await nextTurn();
  assert.deepEqual(tasks(), ['1: {"user_id":"ann1"} {"user_id":"cid1"}', '2: {"user_id":"bob2"}', '0: ?']);
  const refused = assert.rejects(bad, /unreadable/);
  await letAllGo();
  await refused;
  assert.deepEqual(
    (await Promise.all(told)).flat().map(({ data }) => data),
    ['ann1@1', 'bob2@2', 'cid1@1'],
  );
});

test("a batch goes through all lanes, and each event's outcome is that of its learner's lane", async () => {
  const { tracker, held, letAllGo } = heldTracker();
  const told = tracker.track(batch(by('a2'), 'bad', by('b0'), by('c1'), by('a2')), live);
  await nextTurn();
  assert.deepEqual(
    held.map(({ task, lane }) => [lane, task.slots]),
    [
      [0, 0b1001001001001001],
      [1, 0b0010010010010010],
      [2, 0b0100100100100100],
    ],
  );
  await letAllGo();
  assert.deepEqual(
    (await told).map(({ outcome, data }) => (outcome === 'counted' ? data : outcome)),
    ['a2@2', 'invalid', 'b0@0', 'c1@1', 'a2@2'],
  );
});

test('a body that cannot be read fails alone, whatever shares its batch', async () => {
  const { tracker, tasks, letAllGo } = heldTracker();
  const told = [batch(by('a0')), submissionOf('batch', '?'), batch(by('b1'))].map((one) =>
    tracker.track(one, live),
  );
  await nextTurn();
  assert.equal(tasks().length, laneCount);
  const settled = Promise.allSettled(told);
  await letAllGo();
  const [first, bad, last] = await settled;
  assert.ok(first?.status === 'fulfilled' && last?.status === 'fulfilled');
  assert.deepEqual([first.value[0]?.data, last.value[0]?.data], ['a0@0', 'b1@1']);
  assert.ok(bad?.status === 'rejected' && bad.reason instanceof ApiError);
  assert.deepEqual([bad.reason.code, bad.reason.message], ['INVALID_REQUEST', 'unreadable']);
});

test('the answers of one learner keep their order, between single ones and batches', async () => {
  const { tracker, held, letAllGo } = heldTracker();
  const sent = [single('a1'), batch(by('a1'), by('b2')), single('a1'), single('a1'), batch(by('a1'))];
  const told = sent.map((one) => tracker.track(one, live));
  await nextTurn();
  await letAllGo();
  await Promise.all(told);
  const ofLane = held.filter(({ lane }) => lane === 1);
  const [one, two, last] = ['{"user_id":"a1"}', '[{"user_id":"a1"},{"user_id":"b2"}]', '[{"user_id":"a1"}]'];
  assert.deepEqual(
    ofLane.map(({ bodies }) => bodies),
    [[one], [two], [one, one], [last]],
  );
});

test('where one lane is full its events are refused, and the others are counted', async () => {
  const { tracker, letAllGo } = heldTracker();
  const filling = Array.from({ length: 5000 }, () => tracker.track(single('a1'), live));
  const told = tracker.track(batch(by('a1'), by('b2'), by('c0')), live);
  await assert.rejects(tracker.track(single('a1'), live), isUnavailable);
  await nextTurn();
  await letAllGo();
  const outcomes = await told;
  assert.deepEqual(
    outcomes.map(({ outcome }) => outcome),
    ['unavailable', 'counted', 'counted'],
  );
  assert.match(outcomes[0]?.data ?? '', /try again/);
  await Promise.all(filling);
  assert.equal(tracker.countQueued(), 0);
});

test('a lane that fails refuses its events alone; where all do, the batch is', async () => {
  const { tracker, held } = heldTracker();
  const told = tracker.track(batch(by('a1'), by('b2')), live);
  await nextTurn();
  for (const { lane, letGo } of held) letGo(lane === 1 ? countingError() : undefined);
  assert.deepEqual(
    (await told).map(({ outcome }) => outcome),
    ['unavailable', 'counted'],
  );
  tracker.stop();
  await assert.rejects(tracker.track(batch(by('a1'), by('b2')), live), isUnavailable);
});

test("an import's submission is a batch of its own, in the lane of its learners", async () => {
  const { tracker, tasks, letAllGo } = heldTracker();
  const told = ['a2', 'b2'].map((userId) =>
    tracker.track(submissionOf('import', [{ userId, user_id: userId }]), 'i'),
  );
  await nextTurn();
  await letAllGo();
  await Promise.all(told);
  assert.deepEqual(tasks(), ['2: [{"userId":"a2","user_id":"a2"}]', '2: [{"userId":"b2","user_id":"b2"}]']);
});

test('batches of little text do not come by the hundred, for each may have a thousand faults', async () => {
  const { tracker, held, letAllGo } = heldTracker();
  const told = Array.from({ length: 40 }, () => tracker.track(batch(by('a1')), live));
  await nextTurn();
  await letAllGo();
  await Promise.all(told);
  assert.deepEqual(
    held.filter(({ lane }) => lane === 1).map(({ bodies }) => bodies.length),
    Array.from({ length: 10 }, () => 4),
  );
});

test('what made events fail is told once to the log', async () => {
  const { tracker, failures, letAllGo } = heldTracker();
  const told = tracker.track(batch('defect', 'defect', by('a1')), live);
  await nextTurn();
  await letAllGo();
  assert.deepEqual(
    (await told).map(({ outcome }) => outcome),
    ['failed', 'failed', 'counted'],
  );
  assert.deepEqual(failures.map(String), ['Error: the cause']);
});

/**
 * Workers whose tasks come back in any order, after a while. Events are the places of `user_id`s in what was sent.
 * @throws AssertionError where an answer of a learner is begun before an earlier one is over, or twice
 */
function orderedWorkers(random: () => number) {
  const order = new Map<string, number>();
  const away = new Set<string>();
  const threads = new Set<number>();
  const run = async (task: TrackTask, lane: number): Promise<TrackReply> => {
    threads.add(lane);
    const events: { user_id: string; place: number }[] = bodiesOf(task).flatMap((body) => JSON.parse(body));
    const isHere = ({ user_id }: { user_id: string }): boolean =>
      task.form === 'event' || ((task.slots >> findSlot('', user_id)) & 1) === 1;
    const own = events.filter(isHere);
    const learners = new Set(own.map(({ user_id }) => user_id));
    for (const learner of learners) assert.ok(!away.has(learner), `${learner} is being counted`);
    for (const learner of learners) away.add(learner);
    for (const { user_id, place } of own) {
      assert.ok((order.get(user_id) ?? -1) < place, `${user_id}: ${place} after ${order.get(user_id)}`);
      order.set(user_id, place);
    }
    await sleep(Math.floor(3 * random()));
    for (const learner of learners) away.delete(learner);
    const { counted, elsewhere } = outcomeLetters;
    return {
      counts: bodiesOf(task).map((body) => [JSON.parse(body)].flat().length),
      outcomes: events.map((event) => (isHere(event) ? counted : elsewhere)).join(''),
      data: events.map(({ place }) => `${place}`).join(dataSeparator),
    };
  };
  return { run, threads };
}

test('while the lanes change under load, each answer is counted once, those of a learner in their order', async () => {
  const random = seeded(7);
  const { run, threads } = orderedWorkers(random);
  const tracker = createLanes({ laneCount: 1, findSlot, run, onFailure: () => assert.fail() });
  let place = 0;
  const told: Promise<void>[] = [];
  const send = (): void => {
    // Every third answer is one of the hot learner.
    const eventOf = () => ({ user_id: `u${random() < 0.3 ? 4 : Math.floor(10 * random())}`, place: place++ });
    const events = Array.from({ length: 1 + Math.floor(5 * random()) }, eventOf);
    const one = random() < 0.5 ? submissionOf('event', events[0]) : submissionOf('batch', events);
    const sent = one.form === 'event' ? events.slice(0, 1) : events;
    const check = (outcomes: readonly EventOutcome[]): void =>
      assert.deepEqual(
        outcomes.map(({ outcome, data }) => `${outcome} ${data}`),
        sent.map((event) => `counted ${event.place}`),
      );
    told.push(tracker.track(one, live).then(check));
  };
  for (let i = 0; i < 400; i++) {
    for (let n = 0; n < 5; n++) send();
    if (i % 3 === 0) tracker.setLaneCount(1 + Math.floor(4 * random()));
    do await nextTurn();
    while (tracker.countQueued() > 50);
  }
  await Promise.all(told);
  assert.deepEqual([...threads].sort(), [0, 1, 2, 3]);
  assert.equal(tracker.countQueued(), 0);
});

test('what waits goes into the new lanes when nothing is away, and a refusal of one of them is for its part alone', async () => {
  const { tracker, tasks, held, letAllGo } = heldTracker();
  tracker.setLaneCount(1);
  const first = tracker.track(batch(by('a0'), by('b1')), live);
  await nextTurn();
  const second = tracker.track(batch(by('a0'), by('b1'), by('c0')), live);
  tracker.setLaneCount(2);
  await nextTurn();
  assert.equal(held.length, 1, 'the second waits for the first, whose lane is no more');
  held[0]?.letGo();
  await nextTurn();
  await nextTurn();
  assert.deepEqual(
    tasks().map((task) => task[0]),
    ['0', '0', '1'],
  );
  held[2]?.letGo(countingError());
  await letAllGo();
  assert.deepEqual(
    (await first).map(({ outcome }) => outcome),
    ['counted', 'counted'],
  );
  assert.deepEqual(
    (await second).map(({ outcome }) => outcome),
    ['counted', 'unavailable', 'counted'],
  );
});
