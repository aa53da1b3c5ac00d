/** Taking answers back: what waits has read nothing yet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLimiter } from '../../src/concurrency.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { type RetractionPorts, retractAnswer } from '../../src/services/corrections/retract-answer.js';
import { countAnswers } from '../support/builders/answers.js';

test('no history is read before there is a place for it, and beyond a short line none ever', async () => {
  const { learner } = countAnswers([{}]);
  const reads: ((history: { storedRows: string; snapshot: null }) => void)[] = [];
  const ports: RetractionPorts = {
    learners: { read: async () => null, readState: async () => learner },
    models: { current: async () => unfittedModel },
    now: Date.now,
    pendingAttempts: { readPages: async function* () {} },
    stored: { readHistory: () => new Promise((resolve) => reads.push(resolve)) },
    rewriter: { retract: async () => ({ status: 'absent' }) },
    limit: createLimiter({
      maxRunning: 1,
      maxRunningOfTenant: 1,
      maxQueuedOfTenant: 1,
      maxQueueWaitMs: 60_000,
      rejectionMessage: 'Too many',
    }),
  };
  const [first, second, third] = ['a', 'b', 'c'].map((id) =>
    retractAnswer(ports, { tenant: 'school' }, 'ada', id),
  );
  await assert.rejects(third as Promise<object>, { code: 'UNAVAILABLE' });
  for (const [i, answer] of [first, second].entries()) {
    await nextTurn();
    assert.equal(reads.length, i + 1);
    reads[i]?.({ storedRows: '', snapshot: null });
    await assert.rejects(answer as Promise<object>, { code: 'NOT_FOUND' });
  }
});
