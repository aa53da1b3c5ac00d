/** Reads of ClickHouse while answers are drained into it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../src/contracts/access/call.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { createLogger } from '../../src/logger.js';
import { readSkillMastery } from '../../src/services/learners/read-mastery.js';
import { readVelocity } from '../../src/services/learners/read-velocity.js';
import { countAnswers } from '../support/builders/answers.js';

/** A learner whose answers leave the outbox after the query to ClickHouse. */
function drainedWhileRead() {
  const {
    learner,
    skills: [skill],
  } = countAnswers([{}, {}, {}]);
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

test('readVelocity reports the source lag from before its query', async () => {
  const { drain, ...ports } = drainedWhileRead();
  const fetchDays = async () => {
    drain();
    return [];
  };
  const result = await readVelocity({ ...ports, history: { fetchDays } }, callOf({ days: 28 }), 'ada');
  assert.equal((result as { source_lag_seconds: number }).source_lag_seconds, 2);
});

test('readSkillMastery reports answers as pending that its query missed', async () => {
  const { drain, ...ports } = drainedWhileRead();
  const fetchAttempts = async () => {
    drain();
    return { attempts: [], stored: 0, archived: 0 };
  };
  const result = await readSkillMastery(
    { ...ports, history: { fetchAttempts } },
    callOf({ explain: 'true' as const, steps: 10 }),
    'ada',
    'algebra',
  );
  const { pending_attempts, source_lag_seconds } = (result as { explanation: Record<string, unknown> })
    .explanation;
  assert.deepEqual([pending_attempts, source_lag_seconds], [3, 2]);
});
