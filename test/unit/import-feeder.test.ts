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
import { unavailable } from '../../src/errors.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { createFeeder, StalledError } from '../../src/services/import/feeder.js';
import { seeded } from '../support/builders/random.js';

const shards = 4;
const laneCount = 2;

const eventOf = (line: number, user: number): TrackEvent => ({
  tenant: 't',
  userId: `${user}`,
  skillId: 's',
  isCorrect: true,
  timeSpentSeconds: null,
  confidenceScore: null,
  questionDifficulty: null,
  itemId: null,
  eventId: null,
  occurredAt: 0,
  occurredAtText: null,
  receivedAt: 0,
  importLine: line,
});

/**
 * Learners' marks and counted lines by the rules of a commit, behind the real lanes: a batch may be
 * refused, counted with its answer lost, or refused for some of its learners.
 */
function createCounter(random: () => number, trouble: number) {
  const marks = new Map<string, number>();
  const counted: number[] = [];
  const commit = (events: readonly TrackEvent[], refused: ReadonlySet<string>): TrackOutcome[] => {
    const before = new Map(marks);
    return events.map(({ userId, importLine }) => {
      if (refused.has(userId)) return 'unavailable';
      if ((importLine ?? 0) <= (before.get(userId) ?? 0)) return 'skipped';
      marks.set(userId, importLine ?? 0);
      counted.push(importLine ?? 0);
      return 'counted';
    });
  };
  const run = async (task: TrackTask): Promise<TrackReply> => {
    const events = JSON.parse(Buffer.from(task.bodies).toString()) as TrackEvent[];
    await new Promise(setImmediate);
    const fate = random();
    if (fate < trouble / 3) throw unavailable('away');
    const users = new Set(events.filter(() => random() < 0.3).map(({ userId }) => userId));
    const outcomes = commit(events, fate < (2 * trouble) / 3 ? users : new Set());
    if (fate > 1 - trouble / 3) throw new Error('the answer was lost');
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

test('whatever is refused or lost, each line counts once and in order', { timeout: 120_000 }, async (t) => {
  for (let seed = 1; seed <= 6; seed++) {
    const random = seeded(seed);
    const { tracker, counted } = createCounter(random, 0.3);
    let told = 0;
    const feeder = createFeeder({
      tracker,
      importId: 'i',
      shards,
      shardOf: ({ userId }) => Number(userId) % shards,
      onCounted: (now, before) => {
        told += now + before;
      },
    });
    const rows = Array.from({ length: 8000 }, (_, i) => eventOf(i + 1, Math.floor(random() * 12)));
    for (let at = 0; at < rows.length; at += 1000) await feeder.push(rows.slice(at, at + 1000));
    await feeder.drain();
    assert.equal(feeder.findUncountedLine(), null);
    assert.equal(told, rows.length, `seed ${seed}`);
    assert.deepEqual(
      [...counted].sort((a, b) => a - b),
      rows.map(({ importLine }) => importLine),
      `seed ${seed}`,
    );
  }
  t.diagnostic('6 runs of 8,000 rows with a third of the batches in trouble');
});

test('refusals without an end stop the import, and the open lines are known', {
  timeout: 60_000,
}, async () => {
  let clock = 0;
  const feeder = createFeeder({
    tracker: {
      track: () => Promise.reject(unavailable('the store is away')),
    },
    importId: 'i',
    shards: 1,
    shardOf: () => 0,
    onCounted: () => undefined,
    now: () => {
      clock += 10_000;
      return clock;
    },
  });
  await feeder.push([eventOf(3, 1), eventOf(4, 1)]);
  await assert.rejects(
    feeder.drain(),
    (error) => error instanceof StalledError && /30 s: the store is away/.test(error.message),
  );
  assert.equal(feeder.findUncountedLine(), 3);
  await feeder.stop();
});

test('a stop does not wait for rows that stay under way', { timeout: 60_000 }, async () => {
  const feeder = createFeeder({
    tracker: { track: () => new Promise(() => undefined) },
    importId: 'i',
    shards: 1,
    shardOf: () => 0,
    onCounted: () => undefined,
  });
  const closers = createClosers(createLogger('silent', 'test'), 1000);
  stopOnSignal({ closers, stderr: { write: () => undefined }, showProgress: () => undefined }, feeder);
  await feeder.push([eventOf(1, 1)]);
  assert.equal(await closers.close(), true);
});
