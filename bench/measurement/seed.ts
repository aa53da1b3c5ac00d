import { StartError } from '../../src/lifecycle.js';
import { indices, splitIntoParts } from '../../src/lists.js';
import { forEachConcurrently } from '../load/for-each.js';
import { learnerId } from '../load/traffic.js';
import type { Service } from '../targets/service.js';
import type { TenantAnswers } from './ledger.js';

/** The i-th answer, as JSON for POST track-answers. */
export type AnswerGenerator = (i: number) => object;

/** Each round over all learners uses other skills. */
export const createAnswerGenerator =
  (learners: number, skills: number, more: AnswerGenerator = () => ({})): AnswerGenerator =>
  (i) => ({
    user_id: learnerId(i % learners),
    skill_id: `skill-${(i + Math.floor(i / learners)) % skills}`,
    is_correct: (i * 7919) % 10 < 6,
    time_spent_seconds: 5 + (i % 90),
    ...more(i),
  });

const answersPerBatch = 1000;
const parallelRequests = 4;

/** Waits for ClickHouse. @throws StartError if an answer is rejected */
export async function seedAnswers(
  { drains: service, key, tally }: TenantAnswers,
  answers: number,
  seed: AnswerGenerator,
): Promise<void> {
  const batches = splitIntoParts(indices(answers), answersPerBatch);
  await forEachConcurrently(batches, parallelRequests, (batch) => postBatch(service, key, batch.map(seed)));
  tally.acknowledged += answers;
  await service.drainImmediately();
}

async function postBatch({ port }: Service, key: string, events: readonly object[]): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/track-answers`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ events }),
  });
  const text = await response.text();
  if (response.status !== 200)
    throw new StartError(`Seeding answers failed with ${response.status}: ${text.slice(0, 500)}`);
}
