/** The peer that keeps the service's promises for an answer: whatever comes at once and again, each id counts once. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Redis } from 'ioredis';
import { applyAnswer, parseRecord, type SkillRecord } from '../../bench/peers/tracing.js';
import { createPeers } from '../../bench/targets/peers.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { tempDir } from '../support/temp.js';

const key = 'school';
const answers = 60;

async function start(t: TestContext) {
  const closers = createClosers(createLogger('fatal', 'test'), 10_000);
  t.after(() => closers.close());
  const startPeer = createPeers({ folder: await tempDir(t), keys: [key], profile: false, closers });
  const peer = await startPeer('fastify-outbox');
  const redis = new Redis(peer.redisUrl);
  t.after(() => redis.disconnect());
  const post = async (body: object) => {
    const response = await fetch(`http://127.0.0.1:${peer.port}/api/v1/track-answer`, {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  };
  return { redis, post };
}

const answer = (i: number) => ({ user_id: 'ada', skill_id: 'sums', is_correct: true, event_id: `e${i}` });

const traced = (count: number): SkillRecord =>
  Array.from({ length: count }).reduce((state: SkillRecord) => applyAnswer(state, true), parseRecord(null));

test('Fastify with the same promises loses no update, counts each id once and answers it again as before', async (t) => {
  const { redis, post } = await start(t);
  // Each twice, all at once, on one state.
  const events = Array.from({ length: 2 * answers }, (_, i) => answer(i % answers));
  const replies = await Promise.all(events.map(post));
  for (const { status, text } of replies) assert.equal(status, 200, text);
  for (let i = 0; i < answers; i++) assert.equal(replies[i]?.text, replies[i + answers]?.text);
  assert.deepEqual(JSON.parse((await redis.get('state:ada:sums')) as string), traced(answers));
  const rows = await redis.xrange('outbox', '-', '+');
  const ids = rows.map(([, [, row]]) => JSON.parse(row as string).event_id as string);
  assert.equal(ids.length, answers);
  assert.equal(new Set(ids).size, answers);
  const left = await redis.ttl('id:ada:e0');
  assert.ok(left > 86_000 && left <= 86_400, `${left} s`);
  assert.equal((await post({ ...answer(0), is_correct: 'yes' })).status, 400);
  assert.equal((await post({ ...answer(1), event_id: undefined })).status, 200);
  assert.equal(await redis.xlen('outbox'), answers + 1);
});
