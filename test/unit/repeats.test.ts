/** Two events of one id that do not get counted: the second one is told so after five seconds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OpenEvent, startRepeatRejection } from '../../src/compute/stuck-repeats.js';
import type { EventsRequest } from '../../src/compute/track-task.js';
import { ApiError } from '../../src/errors.js';

const submissionOf = (
  body: unknown,
  tenant = 'default',
  idempotencyKey: string | null = null,
): EventsRequest => ({
  form: 'event',
  tenant,
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  idempotencyKey,
  receivedAt: 0,
});

/** Watches submissions whose outcomes wait until they are let go, all at one time that the test moves. */
function heldRepeats() {
  let now = 0;
  const open = new Map<string, OpenEvent>();
  startRepeatRejection(
    () => open.values(),
    () => now,
  );
  const told: string[] = [];
  const watch = (name: string, request: EventsRequest): ((error?: Error) => void) => {
    const tell = (error?: Error): void => {
      if (!open.delete(name)) return;
      told.push(error ? `${name}: ${error instanceof ApiError ? error.code : error.message}` : name);
    };
    open.set(name, {
      request,
      queuedAt: now,
      complete: (outcomes) => tell(outcomes instanceof Error ? outcomes : undefined),
    });
    return tell;
  };
  /** Long enough for one more look. */
  const waitUntil = async (ms: number): Promise<void> => {
    now = ms;
    await sleep(300);
  };
  return { watch, told, waitUntil };
}

const ann = { user_id: 'ann', event_id: 'e' };

test('an event whose id is still being counted is refused after five seconds, and the first goes on', async () => {
  const { watch, told, waitUntil } = heldRepeats();
  const letGo = watch('first', submissionOf(ann));
  watch('again', submissionOf(ann));
  watch('by header', submissionOf({ user_id: 'ann' }, 'default', 'e'));
  await waitUntil(4900);
  assert.deepEqual(told, []);
  await waitUntil(5100);
  assert.deepEqual(told, ['again: CONFLICT', 'by header: CONFLICT']);
  letGo();
  await waitUntil(5200);
  assert.deepEqual(told.slice(2), ['first']);
});

test('others wait as long as it takes: no id, another id, learner or tenant, no event at all', async () => {
  const { watch, told, waitUntil } = heldRepeats();
  const others = [
    submissionOf(ann),
    submissionOf({ user_id: 'ann' }),
    submissionOf({ user_id: 'ann' }),
    submissionOf({ ...ann, event_id: 'f' }),
    submissionOf({ ...ann, user_id: 'ben' }),
    submissionOf(ann, 'other'),
    submissionOf('{"user_id":"ann","event_id":'),
    submissionOf('{"user_id":"ann","event_id":'),
    submissionOf('null'),
  ];
  const letGo = others.map((submission, i) => watch(`${i}`, submission));
  await waitUntil(20_000);
  assert.deepEqual(told, []);
  for (const [i, one] of letGo.entries()) one(i === 0 ? new Error('broken') : undefined);
  await waitUntil(20_100);
  assert.deepEqual(told.toSorted(), ['0: broken', '1', '2', '3', '4', '5', '6', '7', '8']);
});

test('one that is counted in time is told so, and what came later waits its own five seconds', async () => {
  const { watch, told, waitUntil } = heldRepeats();
  watch('first', submissionOf(ann));
  const letGo = watch('in time', submissionOf(ann));
  await waitUntil(3000);
  watch('later', submissionOf(ann));
  await waitUntil(4000);
  letGo();
  await waitUntil(7900);
  assert.deepEqual(told, ['in time']);
  await waitUntil(8100);
  assert.deepEqual(told, ['in time', 'later: CONFLICT']);
});

test('who waited behind another one is refused although that one has failed meanwhile', async () => {
  const { watch, told, waitUntil } = heldRepeats();
  const letGo = watch('first', submissionOf(ann));
  watch('again', submissionOf(ann));
  await waitUntil(4900);
  letGo(new Error('away'));
  await waitUntil(5100);
  assert.deepEqual(told, ['first: away', 'again: CONFLICT']);
});

test('a body is read once, however long it waits', async () => {
  const { watch, waitUntil } = heldRepeats();
  const submission = submissionOf({ user_id: 'ann' });
  let reads = 0;
  watch('counted', {
    ...submission,
    get body() {
      reads += 1;
      return submission.body;
    },
  });
  for (const ms of [2000, 3000, 4000]) await waitUntil(ms);
  assert.equal(reads, 1);
});
