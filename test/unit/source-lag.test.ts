/** What is told of answers that reach ClickHouse while it is being read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../src/contracts/access/call.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { createLogger } from '../../src/logger.js';
import { readSkillMastery } from '../../src/services/learners/read-mastery.js';
import { readVelocity } from '../../src/services/learners/read-velocity.js';
import { countAnswers } from '../support/builders/answers.js';

/** A learner whose answers leave the outbox just after ClickHouse was asked for them. */
function drainedWhileRead() {
  const { learner, skill } = countAnswers([{}, {}, {}]);
  let waitingSeconds = 2;
  const drain = (): void => {
    waitingSeconds = 0;
  };
  return {
    drain,
    learners: {
      read: async () => ({ learner, skills: new Map([['algebra', skill]]), goalRecord: null }),
      readState: async () => learner,
    },
    models: { current: async () => unfittedModel },
    now: Date.now,
    sourceLagSeconds: async () => waitingSeconds,
    logger: createLogger('silent', 'test'),
  };
}

const callOf = <Query>(query: Query) => ({ tenant: 'default', query }) as Call<Query>;

test('velocity: rows that are missing are never told as complete', async () => {
  const { drain, ...ports } = drainedWhileRead();
  const fetchDays = async () => {
    drain();
    return [];
  };
  const told = await readVelocity({ ...ports, history: { fetchDays } }, callOf({ days: 28 }), 'ada');
  assert.equal((told as { source_lag_seconds: number }).source_lag_seconds, 2);
});

test('explanation: answers that are missing are never told as there', async () => {
  const { drain, ...ports } = drainedWhileRead();
  const fetchAttempts = async () => {
    drain();
    return { attempts: [], stored: 0, archived: 0 };
  };
  const told = await readSkillMastery(
    { ...ports, history: { fetchAttempts } },
    callOf({ explain: 'true' as const, steps: 10 }),
    'ada',
    'algebra',
  );
  const { pending_attempts, source_lag_seconds } = (told as { explanation: Record<string, unknown> })
    .explanation;
  assert.deepEqual([pending_attempts, source_lag_seconds], [3, 2]);
});
