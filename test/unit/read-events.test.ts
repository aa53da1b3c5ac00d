/** Where a batch holds nothing but faults, the thread that tells them has time for others meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allSlots, type EventsFormat, type TrackTask } from '../../src/contracts/answers/track-task.js';
import { runInSlices } from '../../src/slices.js';
import { readEvents } from '../../workers/track/read-events.js';
import { createReplyBuilder } from '../../workers/track/results.js';

const events = 1000;

function taskOf(form: EventsFormat, body: string): TrackTask {
  const bodies = Buffer.from(`${body}\n`);
  return {
    form,
    slots: allSlots,
    bodies,
    lengths: [bodies.length - 1],
    tenants: ['default'],
    idempotencyKeys: [null],
    receivedAt: [0],
    importId: null,
    isTimed: false,
  };
}

/** Turns of the loop that others have while the faults of a body are told. */
async function turnsOfOthers(task: TrackTask): Promise<{ turns: number; counts: number[]; told: string }> {
  let turns = 0;
  let other: NodeJS.Immediate;
  const count = (): void => {
    turns++;
    other = setImmediate(count);
  };
  other = setImmediate(count);
  const reply = createReplyBuilder();
  const counts = await runInSlices(readEvents(task, 1, [], reply));
  clearImmediate(other);
  return { turns, counts, told: reply.build(counts).outcomes };
}

const wrong = {
  batch: JSON.stringify({ events: Array.from({ length: events }, () => ({})) }),
  lines: Array.from({ length: events }, (_, i) => (i % 2 === 0 ? '{}' : '{')).join('\n'),
};

for (const [form, body] of Object.entries(wrong)) {
  test(`${form}: all that is wrong is told in steps`, async () => {
    const { turns, counts, told } = await turnsOfOthers(taskOf(form as EventsFormat, body));
    assert.deepEqual(counts, [events]);
    assert.match(told, /^(.)\1{999}$/);
    assert.ok(turns >= 10, `others had ${turns} turns`);
  });
}
