import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLimiter, singleFlight } from '../../src/concurrency.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { type RetractionPorts, retractAnswer } from '../../src/services/corrections/retract-answer.js';
import { countAnswers } from '../support/builders/answers.js';

const rules = {
  ...{ maxRunning: 2, maxRunningOfTenant: 2, maxQueuedOfTenant: 9, maxQueueWaitMs: 60_000 },
  rejectionMessage: 'Too many',
};

/** Work that ends when the test says so. Its name is the letter of its tenant and a number. */
function holdWork(change: Partial<Parameters<typeof createLimiter>[0]> = {}) {
  const limit = createLimiter({ ...rules, ...change });
  const started: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const work = (name: string): Promise<string> =>
    limit(name.charAt(0), () => {
      started.push(name);
      return new Promise((resolve, reject) => {
        ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
      });
    });
  const end = async (name: string, error?: Error): Promise<void> => {
    ends.get(name)?.(error);
    await nextTurn();
  };
  const endAll = async (...names: readonly string[]): Promise<void> => {
    for (const name of names) await end(name);
  };
  return { work, started, end, endAll };
}

test('The limiter runs two at a time, queues others in order, and rejects those of a tenant with a full queue', async () => {
  const { work, started, end, endAll } = holdWork({ maxQueuedOfTenant: 2 });
  const all = ['a1', 'a2', 'a3', 'a4'].map(work);
  await assert.rejects(work('a5'), { code: 'UNAVAILABLE', message: 'Too many' });
  all.push(work('b1'));
  await nextTurn();
  assert.deepEqual(started, ['a1', 'a2']);
  const failed = assert.rejects(all[0] as Promise<string>, /failed/);
  await end('a1', new Error('failed'));
  await failed;
  assert.equal(started.length, 3, 'failed work frees its place');
  await endAll('a2', 'a3', 'b1', 'a4');
  assert.deepEqual(await Promise.all(all.slice(1)), ['a2', 'a3', 'a4', 'b1']);
  const again = [work('a6'), work('a7')];
  await nextTurn();
  assert.equal(started.length, 7, 'both places are free again');
  await endAll('a6', 'a7');
  await Promise.all(again);
});

test('The limiter prefers tenants with little queued work', async () => {
  const { work, started, end, endAll } = holdWork();
  const all = ['a1', 'a2', 'a3', 'a4', 'a5'].map(work);
  await nextTurn();
  await end('a1');
  all.push(...['b1', 'b2', 'c1'].map(work));
  await endAll('a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5');
  await Promise.all(all);
  assert.deepEqual(started, ['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5']);
});

test('The limiter keeps a place free of a tenant that has its maximum', async () => {
  const { work, started, end } = holdWork({ maxRunningOfTenant: 1 });
  const all = ['a1', 'a2', 'b1'].map(work);
  await nextTurn();
  await end('b1');
  assert.deepEqual(started, ['a1', 'b1']);
  await end('a1');
  assert.deepEqual(started, ['a1', 'b1', 'a2']);
  await end('a2');
  await Promise.all(all);
});

test('The limiter rejects work that is queued for too long, and keeps no place for it', async () => {
  const { work, started, endAll } = holdWork({ maxQueueWaitMs: 1 });
  const running = [work('a1'), work('a2')];
  await assert.rejects(work('a3'), { code: 'UNAVAILABLE' });
  await endAll('a1', 'a2');
  await Promise.all(running);
  const again = [work('a4'), work('a5')];
  await nextTurn();
  assert.deepEqual(started, ['a1', 'a2', 'a4', 'a5']);
  await endAll('a4', 'a5');
  await Promise.all(again);
});

test('retractAnswer reads no history before the limiter allows it', async () => {
  const { learner } = countAnswers([{}]);
  const reads: ((history: { storedRows: string; snapshot: null }) => void)[] = [];
  const ports: RetractionPorts = {
    learners: { read: async () => null, readState: async () => learner },
    models: { current: async () => unfittedModel },
    now: Date.now,
    pendingAttempts: { readPages: async function* () {} },
    stored: { readHistory: () => new Promise((resolve) => reads.push(resolve)) },
    rewriter: { retract: async () => ({ status: 'absent' }) },
    limit: createLimiter({ ...rules, maxRunning: 1, maxRunningOfTenant: 1, maxQueuedOfTenant: 1 }),
  };
  const [first, second, third] = ['a', 'b', 'c'].map((id) =>
    retractAnswer(ports, { tenant: 'school' }, 'ada', id),
  );
  await assert.rejects(third as Promise<object>, { code: 'UNAVAILABLE' });
  for (const [i, retraction] of [first, second].entries()) {
    await nextTurn();
    assert.equal(reads.length, i + 1);
    reads[i]?.({ storedRows: '', snapshot: null });
    await assert.rejects(retraction as Promise<object>, { code: 'NOT_FOUND' });
  }
});

test('singleFlight shares a running call, and starts another after it ends or fails', async () => {
  const runs: { resolve: (value: number) => void; reject: (error: Error) => void }[] = [];
  const call = singleFlight(() => new Promise<number>((resolve, reject) => runs.push({ resolve, reject })));
  const first = [call(), call()];
  assert.equal(runs.length, 1);
  runs[0]?.resolve(1);
  assert.deepEqual(await Promise.all(first), [1, 1]);
  const second = [call(), call()];
  assert.equal(runs.length, 2);
  runs[1]?.reject(new Error('failed'));
  for (const one of second) await assert.rejects(one, /failed/);
  const third = call();
  runs[2]?.resolve(3);
  assert.equal(await third, 3);
});
