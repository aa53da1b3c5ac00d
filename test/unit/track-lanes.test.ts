/** How submissions go through several lanes, with workers that count nothing but tell what they were handed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createTracker } from '../../src/compute/tracking.js';
import {
  dataSeparator,
  outcomeLetters,
  type SubmissionForm,
  type TrackReply,
  type TrackTask,
  unreadable,
} from '../../src/contracts/tasks.js';
import { ApiError, notCounted } from '../../src/errors.js';
import type { Submission } from '../../src/services/ports.js';

const lanes = 3;
/** A learner's lane is the digit that the name ends with. */
const laneOf = (_tenant: string, userId: string): number => Number(userId.at(-1));
const live = { acceptNewIds: true, importId: null };

type Event = { readonly user_id: string } | 'bad' | 'defect';

const submissionOf = (form: SubmissionForm, body: unknown): Submission => ({
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
function tell({ form, lane }: TrackTask, event: Event): readonly [letter: string, data: string] {
  const owner = typeof event === 'string' ? 0 : laneOf('', event.user_id);
  if (form === 'batch' && owner !== lane) return [outcomeLetters.elsewhere, ''];
  if (event === 'defect') return [outcomeLetters.failed, 'the cause'];
  if (event === 'bad') return [outcomeLetters.invalid, '{"message":"bad","details":[]}'];
  return [outcomeLetters.counted, `${event.user_id}@${lane}`];
}

function replyTo(task: TrackTask): TrackReply {
  const told: (readonly [string, string])[] = [];
  const counts = bodiesOf(task).map((body) => {
    if (body === '?') {
      told.push([outcomeLetters.invalid, '{"message":"unreadable","details":[]}']);
      return unreadable;
    }
    const events: Event[] = [JSON.parse(body)].flat();
    told.push(...events.map((event) => tell(task, event)));
    return events.length;
  });
  const outcomes = told.map(([letter]) => letter).join('');
  return { counts, outcomes, data: told.map(([, data]) => data).join(dataSeparator) };
}

/** A tracker whose tasks wait until they are let go. */
function heldTracker() {
  const held: { task: TrackTask; bodies: string[]; letGo: (error?: Error) => void }[] = [];
  const failures: unknown[] = [];
  const run = (task: TrackTask): Promise<TrackReply> =>
    new Promise((resolve, reject) => {
      const letGo = (error?: Error): void => (error ? reject(error) : resolve(replyTo(task)));
      held.push({ task, bodies: bodiesOf(task), letGo });
    });
  const tracker = createTracker({ lanes, laneOf, run, onFailure: (error) => failures.push(error) });
  const tasks = () => held.map(({ task, bodies }) => `${task.lane}: ${bodies.join(' ')}`);
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
    held.map(({ task }) => [task.lane, task.lanes]),
    [0, 1, 2].map((lane) => [lane, lanes]),
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
  assert.equal(tasks().length, lanes);
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
  const ofLane = held.filter(({ task }) => task.lane === 1);
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
  assert.equal(tracker.waiting(), 0);
});

test('a lane that fails refuses its events alone; where all do, the batch is', async () => {
  const { tracker, held } = heldTracker();
  const told = tracker.track(batch(by('a1'), by('b2')), live);
  await nextTurn();
  for (const { task, letGo } of held) letGo(task.lane === 1 ? notCounted() : undefined);
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
    tracker.track(submissionOf('import', [{ userId, user_id: userId }]), { ...live, importId: 'i' }),
  );
  await nextTurn();
  await letAllGo();
  await Promise.all(told);
  assert.deepEqual(tasks(), ['2: [{"userId":"a2","user_id":"a2"}]', '2: [{"userId":"b2","user_id":"b2"}]']);
});

test('answers that were taken while ids are refused do not share a batch with others', async () => {
  const { tracker, held, letAllGo } = heldTracker();
  const modes = [live, { ...live, acceptNewIds: false }];
  const told = modes.map((mode) => tracker.track(single('a1'), mode));
  await nextTurn();
  await letAllGo();
  await Promise.all(told);
  assert.deepEqual(
    held.map(({ task }) => task.acceptNewIds),
    [true, false],
  );
});

test('batches of little text do not come by the hundred, for each may have a thousand faults', async () => {
  const { tracker, held, letAllGo } = heldTracker();
  const told = Array.from({ length: 40 }, () => tracker.track(batch(by('a1')), live));
  await nextTurn();
  await letAllGo();
  await Promise.all(told);
  assert.deepEqual(
    held.filter(({ task }) => task.lane === 1).map(({ bodies }) => bodies.length),
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
