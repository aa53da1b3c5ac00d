import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { applyAnswer, parseRecord, type SkillRecord } from '../../bench/peers/tracing.js';
import { writeReport } from '../../bench/report/page.js';
import { createPeers, type Peer } from '../../bench/targets/peers.js';
import { findPostgres, missingPostgres } from '../../bench/targets/postgres.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { benchResults, figure, spread } from '../support/builders/bench-results.js';
import { chromium } from '../support/pages/browser.js';
import { assertLegible } from '../support/pages/legible.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';

const key = 'school';
const count = 60;

interface StoredAnswers {
  /** Of the learner's only skill. */
  readonly state: SkillRecord;
  readonly eventIds: readonly (string | null)[];
}

async function readRedis(t: TestContext, { redisUrl }: Peer): Promise<StoredAnswers> {
  const redis = await redisOf(t, redisUrl);
  const rows = await redis.xrange('outbox', '-', '+');
  const seconds = await redis.ttl('id:ada:e0');
  assert.ok(seconds > 86_000 && seconds <= 86_400, `${seconds} s`);
  return {
    state: JSON.parse((await redis.get('state:ada:sums')) as string),
    eventIds: rows.map(([, [, row]]) => JSON.parse(row as string).event_id),
  };
}

async function readPostgres(_: TestContext, { postgresUrl }: Peer): Promise<StoredAnswers> {
  const client = new pg.Client(postgresUrl);
  await client.connect();
  const states = await client.query<SkillRecord>('SELECT mastery, attempts, correct FROM mastery');
  const attempts = await client.query<{ event_id: string }>('SELECT event_id FROM attempts');
  const { rows } = await client.query("SELECT current_setting('synchronous_commit') AS commit");
  await client.end();
  assert.deepEqual(rows, [{ commit: 'off' }]);
  return { state: states.rows[0] as SkillRecord, eventIds: attempts.rows.map(({ event_id }) => event_id) };
}

const skip = findPostgres() === null && missingPostgres;
const peers = [
  { name: 'fastify-outbox', read: readRedis, skip: false },
  { name: 'fastify-postgres', read: readPostgres, skip },
  { name: 'fastify-postgres-function', read: readPostgres, skip },
] as const;

for (const { name, read, skip } of peers) {
  test(`${name} counts each event id once, loses no update, and repeats its first response`, {
    skip,
  }, async (t) => {
    const closers = createClosers(createLogger('fatal', 'test'), 10_000);
    t.after(() => closers.close());
    const peer = await createPeers({ folder: await tempDir(t), keys: [key], profile: false, closers })(name);
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
    const { state, eventIds } = await read(t, peer);
    assert.deepEqual(state, traced);
    assert.deepEqual([eventIds.length, new Set(eventIds).size], [count, count]);
    assert.equal((await post({ event_id: 'e0', is_correct: 'yes' })).status, 400);
    assert.equal((await post({ is_correct: false })).status, 200);
    assert.equal((await read(t, peer)).eventIds.length, count + 1);
    assert.deepEqual((await read(t, peer)).state, applyAnswer(traced, false));
  });
}

test('The page of the benchmark opens from a file, fits narrow windows, and is legible in both themes', {
  skip: chromium === null && 'Chromium is not installed',
}, async (t) => {
  const file = join(await tempDir(t), 'page.html');
  const far = figure('far from its goal', spread(0.001, 0.5), { atMost: 10 }, 'ms');
  writeReport(benchResults({ figures: [...benchResults().figures, far] }), file);
  await assertLegible(t, file, /^Benchmark of Skilltrace$/);
});
