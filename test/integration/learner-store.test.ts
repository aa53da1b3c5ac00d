import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import type { Redis } from 'ioredis';
import { applyAnswer, newLearner, newSkill } from '../../src/domain/mastery.js';
import { defaultParameters } from '../../src/domain/params.js';
import { connectRedis, whenReady } from '../../src/store/client.js';
import { openDeployment } from '../../src/store/deployment.js';
import { idBytes } from '../../src/store/event-ids.js';
import { forgetOldIds, idWindowSeconds } from '../../src/store/id-window.js';
import { markerKey, outboxKey } from '../../src/store/keys.js';
import {
  commitLearners,
  type LearnerCommit,
  loadLearners,
  readLearner,
} from '../../src/store/learner-store.js';
import { startTestRedis } from '../support/embedded.js';

const outboxBound = 1000;
const noAttempts = async (): Promise<boolean> => false;

async function connect(t: TestContext): Promise<Redis> {
  const client = connectRedis(await startTestRedis(t)) as Redis;
  t.after(() => client.disconnect());
  await whenReady(client, 5000);
  await openDeployment(client, noAttempts);
  return client;
}

const nobody = { partition: 3, tenant: 'default', userId: 'ünïcode 🙂 learner' };

/** One right answer on a new learner. */
function firstCommit(userId = nobody.userId): LearnerCommit {
  const answer = { isCorrect: true, occurredAt: 1_700_000_000_000, questionDifficulty: null };
  const { learner, skill } = applyAnswer(newLearner, newSkill(defaultParameters), answer, defaultParameters);
  return {
    ...nobody,
    userId,
    expectedVersion: 0,
    learner: { ...learner, version: 1 },
    skills: new Map([['algebra', skill]]),
    rows: ['row 1', 'row 2'],
    firstAnswers: [{ id: randomBytes(idBytes), answer: answerAt(1_700_000_000) }],
    importLine: 0,
  };
}

/** A record of an answer's usual size, which leads with the second it came in. */
function answerAt(second: number): Buffer {
  const record = randomBytes(21);
  record.writeUInt32LE(second, 0);
  return record;
}

test('what is committed is what is loaded, together with ids and rows', async (t) => {
  const client = await connect(t);
  const commit = firstCommit();
  assert.deepEqual(await commitLearners(client, [commit], null, outboxBound), ['committed']);
  const id = commit.firstAnswers[0]?.id as Buffer;
  const query = { ...nobody, skillIds: ['algebra', 'other'], eventIds: [id, randomBytes(idBytes)] };
  const [loaded] = await loadLearners(client, [query], null);
  assert.deepEqual(loaded?.learner, commit.learner);
  assert.deepEqual(loaded?.skills, [commit.skills.get('algebra'), null]);
  assert.deepEqual(loaded?.firstAnswers, [commit.firstAnswers[0]?.answer, null]);
  assert.equal((await client.xrange(outboxKey(3), '-', '+')).length, 2);
  assert.deepEqual((await readLearner(client, nobody))?.skills, commit.skills);
});

test('a state that somebody else wrote is never overwritten, and nothing of the commit happens', async (t) => {
  const client = await connect(t);
  await commitLearners(client, [firstCommit()], null, outboxBound);
  const other = firstCommit('somebody else');
  assert.deepEqual(await commitLearners(client, [firstCommit(), other], null, outboxBound), [
    'conflict',
    'committed',
  ]);
  assert.equal(await client.xlen(outboxKey(3)), 4);
  assert.equal(await client.llen('st:{p3}:i:q'), 2);
});

test('a full outbox refuses, and so does a Redis without marks for a new learner', async (t) => {
  const client = await connect(t);
  await commitLearners(client, [firstCommit()], null, outboxBound);
  assert.deepEqual(await commitLearners(client, [firstCommit('second')], null, 2), ['outbox-full']);
  await client.del(markerKey(3));
  assert.deepEqual(await commitLearners(client, [firstCommit('third')], null, outboxBound), ['not-restored']);
  assert.deepEqual(await openDeployment(client, async () => true), { state: 'emptied' });
});

test('an import mark is kept with the commit and read back only by that import', async (t) => {
  const client = await connect(t);
  await commitLearners(client, [{ ...firstCommit(), importLine: 41 }], 'file-a', outboxBound);
  const query = { ...nobody, skillIds: [], eventIds: [] };
  const lines = await Promise.all(
    ['file-a', 'file-b', null].map(async (id) => (await loadLearners(client, [query], id))[0]?.importLine),
  );
  assert.deepEqual(lines, [41, 0, 0]);
});

/** Commits so many ids, all of one second, and returns them. */
async function keepIds(client: Redis, count: number, second: number): Promise<Buffer[]> {
  const ids: Buffer[] = [];
  const perCommit = 500;
  for (let done = 0; done < count; done += perCommit) {
    const firstAnswers = Array.from({ length: perCommit }, () => ({
      id: randomBytes(idBytes),
      answer: answerAt(second),
    }));
    const commit = { ...firstCommit(`learner ${second} ${done}`), rows: [], firstAnswers };
    assert.deepEqual(await commitLearners(client, [commit], null, outboxBound), ['committed']);
    ids.push(...firstAnswers.map(({ id }) => id));
  }
  return ids;
}

const findIds = async (client: Redis, eventIds: readonly Buffer[]): Promise<number> => {
  const [loaded] = await loadLearners(client, [{ ...nobody, skillIds: [], eventIds }], null);
  return loaded?.firstAnswers.filter((answer) => answer !== null).length ?? 0;
};

const usedMemory = async (client: Redis): Promise<number> =>
  Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1]);

test('an event id takes at most 64 bytes of Redis, and every one is found again', async (t) => {
  const client = await connect(t);
  const count = 50_000;
  const learnerBytes = 400 * (count / 500);
  const before = await usedMemory(client);
  const ids = await keepIds(client, count, 1_700_000_000);
  const perId = ((await usedMemory(client)) - before - learnerBytes) / count;
  t.diagnostic(`${perId.toFixed(1)} bytes per event id`);
  assert.ok(perId <= 64, `${perId} bytes per id`);
  let found = 0;
  for (let i = 0; i < count; i += 1000) found += await findIds(client, ids.slice(i, i + 1000));
  assert.equal(found, count);
});

test('ids are forgotten after a day, and the oldest first where there are too many', async (t) => {
  const client = await connect(t);
  const now = 1_700_000_000;
  const expired = await keepIds(client, 500, now - idWindowSeconds - 1);
  const old = await keepIds(client, 1000, now - 7200);
  const young = await keepIds(client, 1000, now - 60);
  assert.equal(await forgetOldIds(client, 16, 5000, now * 1000), idWindowSeconds);
  assert.equal(await findIds(client, expired), 0);
  assert.equal(await findIds(client, [...old, ...young]), 2000);
  assert.equal(await forgetOldIds(client, 16, 1200, now * 1000), 7200);
  assert.equal(await findIds(client, young), 1000);
  assert.equal(await findIds(client, old), 200);
});
