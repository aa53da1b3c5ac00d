/** The calls of the client, and their errors. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Skilltrace, SkilltraceError, type SkilltraceErrorCode } from '../../src/client/index.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { listed } from '../support/listed.js';
import { startFront } from '../support/servers/front.js';
import { keysOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const { baseUrl, key: apiKey } = service;
const client = new Skilltrace({ baseUrl, apiKey });
const skill_id = 'linear equations/ü';
const answerOf = (user_id: string) => ({ user_id, skill_id, is_correct: true });

async function failed(
  call: Promise<unknown>,
  code: SkilltraceErrorCode,
  status = 0,
): Promise<SkilltraceError> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof SkilltraceError, `${error}`);
  assert.deepEqual([error.code, error.status], [code, status], error.message);
  return error;
}

test('Skilltrace has the calls for a learner, from the first answer to the erasure', async () => {
  const first = await client.trackAnswer({ ...answerOf('ada'), event_id: 'a/1' });
  assert.deepEqual([first.total_attempts, first.correct_attempts], [1, 1]);
  const batch = await client.trackAnswers([answerOf('ada'), { ...answerOf('ada'), time_spent_seconds: -1 }]);
  assert.deepEqual([batch.accepted, batch.rejected], [1, 1]);
  const results = batch.results.map((result) =>
    'error' in result ? result.error.code : result.data.total_attempts,
  );
  assert.deepEqual(results, [2, 'INVALID_REQUEST']);

  const prediction = await client.predictions('ada', { days: 60 });
  assert.equal(prediction.forecast_days, 60);
  assert.equal(typeof prediction.predicted_total_in_60_days, 'number');
  const forecasts = await client.classPredictions({ user_ids: ['ada', 'nobody'], days: 7 });
  const statuses = forecasts.results.map(({ status }) => status);
  assert.deepEqual(statuses, [200, 404]);
  const { plan } = await client.whatIf('ada', { answers_per_day: 10, skills: undefined });
  assert.equal(plan.answers_per_day, 10);
  assert.equal((await client.mastery('ada', { limit: 1 })).skills[0]?.skill_id, skill_id);
  assert.equal((await client.skillMastery('ada', skill_id)).explanation, undefined);
  assert.ok((await client.skillMastery('ada', skill_id, { explain: true, steps: 1 })).explanation);
  assert.equal((await client.velocity('ada', { skill_id, days: 7 })).days, 7);

  const attempts = await listed(client.allAttempts('ada', { limit: 1 }));
  const numbers = attempts.map(({ learner_seq }) => learner_seq);
  assert.deepEqual(numbers, [2, 1]);
  assert.equal((await client.attempts('ada')).total_attempts, 2);
  assert.match(attempts[0]?.event_id ?? '', /^[\da-f-]{36}$/);
  assert.equal((await client.retractAttempt('ada', 'a/1')).total_attempts, 1);

  const lines = await listed(client.exportLearner('ada'));
  assert.deepEqual([lines[0]?.type, lines.at(-1)?.type], ['meta', 'end']);
  const { erasure_id } = await client.eraseLearner('ada');
  assert.equal((await client.erasure(erasure_id)).erasure_id, erasure_id);
  await failed(client.mastery('ada'), 'USER_NOT_FOUND', 404);
});

test('Skilltrace reads goals, skills and the xAPI mapping, and writes them if the etag matches', async () => {
  const goal = await client.setGoal('ben', { target_score: 1200 });
  assert.equal((await client.goal('ben')).etag, goal.etag);
  const raised = await client.setGoal('ben', { target_score: 1300 }, { ifMatch: goal.etag });
  const staleGoal = client.setGoal('ben', { target_score: 1400 }, { ifMatch: goal.etag });
  await failed(staleGoal, 'PRECONDITION_FAILED', 412);
  assert.equal((await client.deleteGoal('ben', { ifMatch: raised.etag })).target_score, null);

  const skill = await client.setSkill('algebra', { name: 'Algebra', section: 'math' });
  const read = await client.skill('algebra');
  assert.deepEqual([read.etag, read.name], [skill.etag, 'Algebra']);
  await client.setSkill('algebra', { ...read, weight: 2 }, { ifMatch: read.etag });
  assert.equal((await client.skills({ limit: 1 })).skills.length, 1);
  assert.equal((await client.deleteSkill('algebra')).skill_id, 'algebra');

  const unset = await client.xapiMapping();
  const setting = { home_page: 'https://lms.example', skills: { 'https://lms.example/7': 'algebra' } };
  const mapping = await client.setXapiMapping(setting, { ifMatch: unset.etag });
  assert.deepEqual([mapping.unmapped, mapping.skills], ['reject', setting.skills]);
  assert.deepEqual(await client.xapiMapping(), mapping);
  const stale = client.setXapiMapping({ ...mapping, unmapped: 'ignore' }, { ifMatch: unset.etag });
  await failed(stale, 'PRECONDITION_FAILED', 412);
});

test('Skilltrace reads health, probes and metrics without a key', async () => {
  const open = new Skilltrace({ baseUrl: `${baseUrl}/` });
  assert.equal((await open.health()).status, 'ok');
  assert.equal((await open.livez()).status, 'ok');
  assert.equal((await open.readyz()).status, 'ready');
  assert.match(await open.metrics(), /^# HELP /);
});

test('SkilltraceError has the code, status, details and request id of the response', async () => {
  const invalid = client.trackAnswer({ ...answerOf('x'), confidence_score: 6 });
  const error = await failed(invalid, 'INVALID_REQUEST', 400);
  assert.equal(error.details[0]?.path, 'confidence_score');
  assert.ok(error.requestId);
  assert.deepEqual([error.retryable, error.tries], [false, 1]);
  await failed(new Skilltrace({ baseUrl, apiKey: 'wrong' }).mastery('x'), 'UNAUTHORIZED', 401);
  const reader = new Skilltrace({ baseUrl, apiKey: await keys.add({ scopes: ['read'] }) });
  await failed(reader.trackAnswer(answerOf('x')), 'FORBIDDEN', 403);
  await failed(new Skilltrace({ baseUrl: `${baseUrl}/elsewhere`, apiKey }).skills(), 'NOT_FOUND', 404);
});

test('Skilltrace rejects ids that would change the path, without a request', async () => {
  for (const id of ['', '.', '..']) await failed(client.retractAttempt('ada', id), 'INVALID_REQUEST');
});

test('Skilltrace distinguishes a lost connection, a timeout and an abort', async (t) => {
  const retry = { tries: 2, firstDelayMs: 1 };
  const nowhere = new Skilltrace({ baseUrl: `http://127.0.0.1:${await findFreePort()}`, apiKey, retry });
  const lost = await failed(nowhere.skills(), 'NETWORK_ERROR');
  assert.deepEqual([lost.retryable, lost.tries, lost.cause instanceof Error], [true, 2, true]);

  const front = await startFront(t, service);
  front.decide = () => 'silence';
  const slow = new Skilltrace({ baseUrl: front.baseUrl, apiKey, timeoutMs: 50, retry });
  assert.equal((await failed(slow.skills(), 'TIMEOUT')).tries, 2);

  const aborting = new AbortController();
  const calling = new Skilltrace({ baseUrl: front.baseUrl, apiKey }).skills({ signal: aborting.signal });
  aborting.abort(new Error('not needed'));
  assert.match(`${(await failed(calling, 'ABORTED')).cause}`, /not needed/);
  await failed(client.skills({ signal: AbortSignal.abort() }), 'ABORTED');
  await failed(listed(client.exportLearner('ada', { signal: AbortSignal.abort() })), 'ABORTED');
});

test('Skilltrace retries only safe calls, with the same event id, after the Retry-After of the service', async (t) => {
  const front = await startFront(t, service);
  const error = { code: 'UNAVAILABLE', message: 'not now' };
  const unavailable = { status: 503, headers: { 'Retry-After': '1' }, body: JSON.stringify({ error }) };
  front.decide = (_, i) => (i === 0 ? 'lost' : i === 1 ? unavailable : null);
  const patient = new Skilltrace({ baseUrl: front.baseUrl, retry: { firstDelayMs: 1 } });
  assert.equal((await patient.trackAnswer(answerOf('cem'))).total_attempts, 1, 'the answer counts twice');
  const [, second, third] = front.passed;
  assert.equal(new Set(front.passed.map(({ body }) => body)).size, 1, 'the event id changes');
  const waited = (third?.at ?? 0) - (second?.at ?? 0);
  assert.ok(waited >= 990, `${waited} ms`);

  front.decide = () => unavailable;
  const hasty = new Skilltrace({ baseUrl: front.baseUrl, retry: { withinMs: 500 } });
  assert.equal((await failed(hasty.skills(), 'UNAVAILABLE', 503)).retryAfterMs, 1000);
  const write = hasty.setGoal('cem', { target_score: 1200 }, { ifMatch: '"1"' });
  assert.equal((await failed(write, 'UNAVAILABLE', 503)).tries, 1, 'a conditional write is retried');

  front.decide = () => ({ status: 502, body: '<html>' });
  const proxied = new Skilltrace({ baseUrl: front.baseUrl, retry: { tries: 3, firstDelayMs: 1 } });
  assert.equal((await failed(proxied.skills(), 'BAD_RESPONSE', 502)).tries, 3);
  front.decide = () => ({ status: 302, headers: { Location: baseUrl } });
  assert.equal((await failed(proxied.skills(), 'BAD_RESPONSE', 302)).tries, 1, 'the key follows a redirect');
  front.decide = () => ({ status: 200, body: '{"type":"meta"}\n{"type":"attempt","skill_' });
  await failed(listed(proxied.exportLearner('ada')), 'BAD_RESPONSE', 200);
});
