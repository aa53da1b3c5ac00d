import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type OpenEvent, startRepeatRejection } from '../../src/compute/stuck-repeats.js';
import type { EventsRequest } from '../../src/compute/track-task.js';
import { ApiError } from '../../src/errors.js';

const requestOf = (body: unknown, change: Partial<EventsRequest> = {}): EventsRequest => ({
  ...{ form: 'event', tenant: 'default', idempotencyKey: null, receivedAt: 0 },
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  ...change,
});

/** Open events that complete when the test says so, at times that the test chooses. */
function openEvents(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  const open = new Map<string, OpenEvent>();
  startRepeatRejection(
    () => open.values(),
    () => now,
  );
  const results: string[] = [];
  return {
    results,
    add: (name: string, request: EventsRequest): ((error?: Error) => void) => {
      const complete = (error?: Error): void => {
        if (!open.delete(name)) return;
        results.push(error ? `${name}: ${error instanceof ApiError ? error.code : error.message}` : name);
      };
      open.set(name, {
        request,
        queuedAt: now,
        complete: (outcomes) => complete(outcomes instanceof Error ? outcomes : undefined),
      });
      return complete;
    },
    /** Advances the clock and runs one check. */
    checkAt: (ms: number): void => {
      now = ms;
      t.mock.timers.tick(250);
    },
  };
}

const ann = { user_id: 'ann', event_id: 'e' };

test('An event with the id of an open event is rejected after 5 s with CONFLICT', (t) => {
  const { add, results, checkAt } = openEvents(t);
  const complete = add('first', requestOf(ann));
  add('again', requestOf(ann));
  add('by header', requestOf({ user_id: 'ann' }, { idempotencyKey: 'e' }));
  checkAt(4900);
  assert.deepEqual(results, []);
  checkAt(5000);
  assert.deepEqual(results, ['again: CONFLICT', 'by header: CONFLICT']);
  complete();
  checkAt(5200);
  assert.deepEqual(results.slice(2), ['first']);
});

test('Events of other ids, learners and tenants, without id or unreadable, are never rejected', (t) => {
  const { add, results, checkAt } = openEvents(t);
  const requests = [
    requestOf(ann),
    requestOf({ user_id: 'ann' }),
    requestOf({ user_id: 'ann' }),
    requestOf({ ...ann, event_id: 'f' }),
    requestOf({ ...ann, user_id: 'ben' }),
    requestOf(ann, { tenant: 'other' }),
    requestOf('{"user_id":"ann","event_id":'),
    requestOf('{"user_id":"ann","event_id":'),
    requestOf('null'),
  ];
  for (const [i, request] of requests.entries()) add(`${i}`, request);
  checkAt(20_000);
  assert.deepEqual(results, []);
});

test('A repeated event waits for its own 5 s, also if the first event completes or fails before', (t) => {
  const { add, results, checkAt } = openEvents(t);
  const completeFirst = add('first', requestOf(ann));
  const completeSecond = add('second', requestOf(ann));
  checkAt(3000);
  add('third', requestOf(ann));
  checkAt(4000);
  completeSecond();
  checkAt(4900);
  completeFirst(new Error('failed'));
  checkAt(7900);
  assert.deepEqual(results, ['second', 'first: failed']);
  checkAt(8000);
  assert.deepEqual(results.slice(2), ['third: CONFLICT']);
});

test('The check for repeated events parses each body once', (t) => {
  const { add, checkAt } = openEvents(t);
  const request = requestOf({ user_id: 'ann' });
  let reads = 0;
  add('counted', {
    ...request,
    get body() {
      reads += 1;
      return request.body;
    },
  });
  for (const ms of [2000, 3000, 4000]) checkAt(ms);
  assert.equal(reads, 1);
});
