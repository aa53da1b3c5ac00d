/** More answers than can be counted in a second: the next ones are refused at once, those that wait are counted. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { redisOf, startService } from '../support/servers/service.js';

const service = await startService({ after });
const caller = callerOf(service, service.key);

exitAfterTests();

/** A batch of one answer that weighs as much as a batch may: eighteen of them fill every lane. */
const wideBatch = (n: number) =>
  caller.call({
    path: '/api/v1/track-answers',
    body: `{"events":[${JSON.stringify(event({ user_id: 'ada', event_id: `${n}` }))}${' '.repeat(1_000_000)}]}`,
  });

const waiting = 24;
/** For less than Redis is waited for; and keys are asked for again after two seconds, behind what stands still. */
const pauseMs = 4000;
const lookMs = 300;
/** A busy machine may take longer to receive the batches than Redis stands still. */
const tries = 8;
const refusal = 'Too many answers wait to be counted; try again later';

/** Sends more than is counted, and looks what becomes of others meanwhile. @returns the refusals, if there were any */
async function crowd(stop: () => Promise<unknown>): Promise<readonly JsonAnswer[]> {
  assert.equal((await caller.track(event())).status, 200);
  await stop();
  const batches = Array.from({ length: waiting }, (_, n) => wideBatch(n));
  let answers: readonly JsonAnswer[] = [];
  for (const since = performance.now(); performance.now() - since < pauseMs; ) {
    const asked = Promise.all([caller.track(event()), caller.trackAll([event()])]);
    answers = await Promise.race([asked, sleep(lookMs, [])]);
    if (answers.length > 0 && answers.every(({ json }) => json.error?.message === refusal)) break;
    answers = [];
  }
  await Promise.all(batches);
  return answers;
}

test('where the lanes are full, answers and batches get 503; what waits is counted once', async (t) => {
  const redis = await redisOf(t, service.redisUrl);
  // Keys are still read: only counting stands still.
  const stop = () => redis.call('CLIENT', 'PAUSE', pauseMs, 'WRITE');
  let refused: readonly JsonAnswer[] = [];
  for (let i = 0; i < tries && refused.length === 0; i++) refused = await crowd(stop);
  assert.deepEqual(
    refused.map(({ status, headers, json }) => [status, json.error.code, headers['retry-after']]),
    [1, 2].map(() => [503, 'UNAVAILABLE', '1']),
  );
  for (let n = 0; n < waiting; n++) assert.equal((await wideBatch(n)).status, 200);
  const { json } = await caller.get('/api/v1/mastery/ada');
  assert.equal(json.data.skills[0].total_attempts, waiting);
});
