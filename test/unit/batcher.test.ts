import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BatcherOptions, createBatcher } from '../../src/compute/batcher.js';
import type { TrackEvent, TrackReply, TrackTask } from '../../src/contracts/tasks.js';
import type { Tracked, TrackMode } from '../../src/services/ports.js';

const live: TrackMode = { acceptNewIds: true, importId: null };
const other: TrackMode = { acceptNewIds: false, importId: null };

const event = (userId: string, importLine: number): TrackEvent => ({
  tenant: 'default',
  userId,
  skillId: 'algebra',
  isCorrect: true,
  timeSpentSeconds: null,
  confidenceScore: null,
  questionDifficulty: null,
  itemId: null,
  eventId: null,
  occurredAt: 0,
  occurredAtText: null,
  receivedAt: 0,
  importLine,
});

/** A batcher whose batches wait until they are let go; lanes by the length of the learner's name. */
function heldBatcher(change: Partial<BatcherOptions> = {}) {
  const held: { lines: number[]; letGo: (reply?: Error) => void }[] = [];
  const failures: unknown[] = [];
  const run = (task: TrackTask): Promise<TrackReply> =>
    new Promise((resolve, reject) => {
      const lines: number[] = JSON.parse(task.events).map(({ importLine }: TrackEvent) => importLine);
      const counted: TrackReply = { outcomes: lines.map(() => 'counted'), data: lines.map(String) };
      held.push({ lines, letGo: (error) => (error ? reject(error) : resolve(counted)) });
    });
  const options = {
    lanes: 2,
    laneOf: ({ userId }: TrackEvent) => userId.length % 2,
    maxBatch: 3,
    maxWaiting: 5,
  };
  const batcher = createBatcher({ ...options, run, onFailure: (error) => failures.push(error), ...change });
  const told: [line: number, tracked: Tracked][] = [];
  const track = (userId: string, lines: readonly number[], mode = live): void => {
    const events = lines.map((line) => event(userId, line));
    batcher.track(events, mode, (place, tracked) => told.push([lines[place] as number, tracked]));
  };
  return { batcher, held, failures, told, track };
}

test('what comes in one turn shares a batch, and the next batch waits for it', async () => {
  const { held, track, told } = heldBatcher();
  track('a', [1]);
  track('a', [2]);
  await nextTurn();
  track('a', [3, 4, 5, 6]);
  await nextTurn();
  assert.deepEqual(
    held.map(({ lines }) => lines),
    [[1, 2]],
  );
  held[0]?.letGo();
  await nextTurn();
  assert.deepEqual(
    held.map(({ lines }) => lines),
    [
      [1, 2],
      [3, 4, 5],
    ],
  );
  assert.deepEqual(
    told.map(([line]) => line),
    [1, 2],
  );
});

test('lanes do not wait for one another, and a batch is of one mode', async () => {
  const { held, track } = heldBatcher();
  track('a', [1]);
  track('bb', [2]);
  track('a', [3], other);
  await nextTurn();
  assert.deepEqual(
    held.map(({ lines }) => lines),
    [[1], [2]],
  );
});

test('a full lane refuses, and a failed batch fails alone', async () => {
  const { held, track, told, failures } = heldBatcher();
  track('a', [1]);
  await nextTurn();
  track('a', [2, 3, 4, 5, 6, 7]);
  assert.deepEqual(
    told.map(([line, { outcome }]) => [line, outcome]),
    [[7, 'unavailable']],
  );
  held[0]?.letGo(new Error('broken'));
  await nextTurn();
  held[1]?.letGo();
  await nextTurn();
  assert.deepEqual(
    told.slice(1).map(([line, { outcome }]) => [line, outcome]),
    [
      [1, 'failed'],
      [2, 'counted'],
      [3, 'counted'],
      [4, 'counted'],
    ],
  );
  assert.equal(failures.length, 1);
});

test('stopping refuses what waits and what comes, and tells what is away', async () => {
  const { batcher, held, track, told } = heldBatcher();
  track('a', [1]);
  await nextTurn();
  track('a', [2]);
  batcher.stop();
  track('a', [3]);
  held[0]?.letGo();
  await nextTurn();
  assert.deepEqual(
    told.map(([line, { outcome }]) => [line, outcome]),
    [
      [2, 'unavailable'],
      [3, 'unavailable'],
      [1, 'counted'],
    ],
  );
  assert.equal(batcher.waiting(), 0);
});
