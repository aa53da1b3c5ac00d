import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stopOnSignal } from '../../src/cli/import/run-import.js';
import { createLanes } from '../../src/compute/lanes.js';
import {
  dataSeparator,
  outcomeLetters,
  type TrackEvent,
  type TrackOutcome,
  type TrackReply,
  type TrackTask,
} from '../../src/contracts/answers/track-task.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { newLearner } from '../../src/domain/tracing/learner-states.js';
import { unavailable } from '../../src/errors.js';
import { createClosers } from '../../src/lifecycle.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { createFeeder, StalledError } from '../../src/services/import/feeder.js';
import { emptyIds } from '../../src/store/learners/event-ids.js';
import { planLearner } from '../../workers/track/plan-learner.js';
import { groupByLearner } from '../../workers/track/read-events.js';
import { seeded } from '../support/builders/random.js';
import { valuesOf } from '../support/values-of.js';

const shards = 4;
const laneCount = 2;

const eventOf = (line: number, user: number): TrackEvent => ({
  ...{
    tenant: 't',
    userId: `${user}`,
    skillIds: ['s'],
    listsSkills: false,
    itemId: null,
    eventId: null,
    isCorrect: true,
  },
  ...{ timeSpentSeconds: null, confidenceScore: null, questionDifficulty: null },
  ...{ occurredAt: 0, occurredAtText: null, receivedAt: 0, importLine: line },
});

type FeederOptions = Parameters<typeof createFeeder>[0];

const startFeeder = (change: Pick<FeederOptions, 'tracker'> & Partial<FeederOptions>) =>
  createFeeder({ importId: 'i', shards: 1, shardOf: () => 0, onCounted: () => undefined, ...change });

/**
 * Counts lines like a commit, behind real lanes. A batch can fail, lose its reply after it was counted, or fail for
 * some of its learners.
 */
function createCounter(random: () => number, failureRate: number) {
  const marks = new Map<string, number>();
  const counted: number[] = [];
  const commit = (events: readonly TrackEvent[], failed: ReadonlySet<string>): TrackOutcome[] => {
    const before = new Map(marks);
    return events.map(({ userId, importLine }) => {
      if (failed.has(userId)) return 'unavailable';
      if ((importLine ?? 0) <= (before.get(userId) ?? 0)) return 'skipped';
      marks.set(userId, importLine ?? 0);
      counted.push(importLine ?? 0);
      return 'counted';
    });
  };
  const run = async (task: TrackTask): Promise<TrackReply> => {
    const events = JSON.parse(Buffer.from(task.bodies).toString()) as TrackEvent[];
    await new Promise(setImmediate);
    const draw = random();
    if (draw < failureRate / 3) throw unavailable('unavailable');
    const users = new Set(events.filter(() => random() < 0.3).map(({ userId }) => userId));
    const outcomes = commit(events, draw < (2 * failureRate) / 3 ? users : new Set());
    if (draw > 1 - failureRate / 3) throw new Error('the reply was lost');
    return {
      counts: [events.length],
      outcomes: outcomes.map((outcome) => outcomeLetters[outcome]).join(''),
      data: outcomes.map(() => '').join(dataSeparator),
    };
  };
  const tracker = createLanes({
    laneCount,
    findSlot: (_, userId) => Number(userId) % shards,
    run,
    onFailure: () => undefined,
  });
  return { tracker, counted };
}

test('The feeder counts each line once and in order although batches fail or lose replies', async () => {
  for (let seed = 1; seed <= 3; seed++) {
    const random = seeded(seed);
    const { tracker, counted } = createCounter(random, 0.3);
    let reported = 0;
    const feeder = startFeeder({
      tracker,
      shards,
      shardOf: ({ userId }) => Number(userId) % shards,
      onCounted: (now, before) => {
        reported += now + before;
      },
    });
    const rows = Array.from({ length: 8000 }, (_, i) => eventOf(i + 1, Math.floor(random() * 12)));
    for (let at = 0; at < rows.length; at += 1000) await feeder.push(rows.slice(at, at + 1000));
    await feeder.drain();
    assert.equal(feeder.findUncountedLine(), null);
    assert.equal(reported, rows.length, `seed ${seed}`);
    counted.sort((a, b) => a - b);
    assert.deepEqual(counted, indices(rows.length + 1).slice(1), `seed ${seed}`);
  }
});

test('The feeder gives up after 30 s without progress and knows the first uncounted line', async () => {
  let clock = 0;
  const tracker = { track: () => Promise.reject(unavailable('the store is unavailable')) };
  const now = (): number => {
    clock += 10_000;
    return clock;
  };
  const feeder = startFeeder({ tracker, now });
  await feeder.push([eventOf(3, 1), eventOf(4, 1)]);
  await assert.rejects(
    feeder.drain(),
    (error) => error instanceof StalledError && /30 s: the store is unavailable/.test(error.message),
  );
  assert.equal(feeder.findUncountedLine(), 3);
  await feeder.stop();
});

test('planLearner skips the lines of an import up to the last counted line', () => {
  const lines = [4, 5, 6].map((line) => ({ replyIndex: line, event: eventOf(line, 1) }));
  const [learner] = groupByLearner(lines, 16);
  assert.ok(learner !== undefined);
  const loaded = {
    learner: { ...newLearner, version: 7 },
    hasGoal: false,
    skills: [null],
    ids: emptyIds,
    items: [],
  };
  const plan = planLearner(
    learner,
    { ...loaded, importLine: 5 },
    {
      ...{ model: unfittedModel, subscribedTypes: '', findItem: () => null },
      ...{ learnerSkills: undefined, skillAllowance: undefined },
    },
  );
  assert.deepEqual(valuesOf(plan.outcomes, 'outcome'), ['skipped', 'skipped', 'counted']);
  assert.equal(plan.commit?.importLine, 6);
});

test('A stop does not wait for rows in flight', async () => {
  const feeder = startFeeder({ tracker: { track: () => new Promise(() => undefined) } });
  const closers = createClosers(createLogger('silent', 'test'), 1000);
  stopOnSignal({ closers, stderr: { write: () => undefined }, showProgress: () => undefined }, feeder);
  await feeder.push([eventOf(1, 1)]);
  assert.equal(await closers.close(), true);
});
