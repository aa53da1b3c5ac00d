import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allSlots, type EventsFormat, type TrackTask } from '../../src/contracts/answers/track-task.js';
import { runInSlices } from '../../src/slices.js';
import { readEvents } from '../../workers/track/read-events.js';
import { createReplyBuilder } from '../../workers/track/results.js';

const invalidBatches: Partial<Record<EventsFormat, string>> = {
  batch: JSON.stringify({ events: Array.from({ length: 1000 }, () => ({})) }),
  lines: Array.from({ length: 1000 }, (_, i) => (i % 2 === 0 ? '{}' : '{')).join('\n'),
};

for (const [form, body] of Object.entries(invalidBatches)) {
  test(`readEvents lets other work run while it describes 1,000 invalid events (${form})`, async () => {
    const bodies = Buffer.from(`${body}\n`);
    const task: TrackTask = {
      ...{ form: form as EventsFormat, slots: allSlots, bodies, lengths: [bodies.length - 1] },
      ...{ tenants: ['default'], idempotencyKeys: [null], receivedAt: [0], importId: null, isTimed: false },
    };
    let turns = 0;
    let other: NodeJS.Immediate;
    const countTurn = (): void => {
      turns++;
      other = setImmediate(countTurn);
    };
    other = setImmediate(countTurn);
    const reply = createReplyBuilder();
    const counts = await runInSlices(readEvents(task, 1, [], reply));
    clearImmediate(other);
    assert.deepEqual(counts, [1000]);
    assert.match(reply.build(counts).outcomes, /^(.)\1{999}$/);
    assert.ok(turns >= 10, `other work had ${turns} turns`);
  });
}
