import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { applyAnswer, parseRecord, type SkillRecord } from '../../bench/peers/tracing.js';
import { writeReport } from '../../bench/report/page.js';
import { createPeers } from '../../bench/targets/peers.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { benchResults, figure, spread } from '../support/builders/bench-results.js';
import { chromium } from '../support/pages/browser.js';
import { assertLegible } from '../support/pages/legible.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

const key = 'school';
const count = 60;

test('The Fastify peer counts each event id once, loses no update, and repeats its first response', async (t) => {
  const closers = createClosers(createLogger('fatal', 'test'), 10_000);
  t.after(() => closers.close());
  const startPeer = createPeers({ folder: await tempDir(t), keys: [key], profile: false, closers });
  const peer = await startPeer('fastify-outbox');
  const redis = await redisOf(t, peer.redisUrl);
  const post = async (change: object) => {
    const response = await fetch(`http://127.0.0.1:${peer.port}/api/v1/track-answer`, {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ user_id: 'ada', skill_id: 'sums', is_correct: true, ...change }),
    });
    return { status: response.status, text: await response.text() };
  };
  // Each id twice, all in parallel, on one state.
  const sent = Array.from({ length: 2 * count }, (_, i) => post({ event_id: `e${i % count}` }));
  const responses = await Promise.all(sent);
  for (const [i, { status, text }] of responses.entries()) {
    assert.equal(status, 200, text);
    assert.equal(text, responses[i % count]?.text);
  }
  const traced = Array.from({ length: count }).reduce(
    (state: SkillRecord) => applyAnswer(state, true),
    parseRecord(null),
  );
  assert.deepEqual(JSON.parse((await redis.get('state:ada:sums')) as string), traced);
  const rows = await redis.xrange('outbox', '-', '+');
  const ids = rows.map(([, [, row]]) => JSON.parse(row as string).event_id as string);
  assert.deepEqual([ids.length, new Set(ids).size], [count, count]);
  const seconds = await redis.ttl('id:ada:e0');
  assert.ok(seconds > 86_000 && seconds <= 86_400, `${seconds} s`);
  assert.equal((await post({ event_id: 'e0', is_correct: 'yes' })).status, 400);
  assert.equal((await post({})).status, 200);
  assert.equal(await redis.xlen('outbox'), count + 1);
});

test('The page of the benchmark opens from a file, fits narrow windows, and is legible in both themes', {
  skip: chromium === null && 'Chromium is not installed',
}, async (t) => {
  const file = join(await tempDir(t), 'page.html');
  const far = figure('far from its goal', spread(0.001, 0.5), { atMost: 10 }, 'ms');
  writeReport(benchResults({ figures: [...benchResults().figures, far] }), file);
  await assertLegible(t, file, /^Benchmark of Skilltrace$/);
});
