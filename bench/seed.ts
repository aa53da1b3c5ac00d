/** Answers that have to be there before something is measured, through batches, in an order that repeats. */
import { StartError } from '../src/lifecycle.js';
import type { Tally } from './ledger.js';
import { learnerId } from './load/traffic.js';
import type { Service } from './service.js';

/** The i-th answer, as JSON for POST track-answers. */
export type Seed = (i: number) => object;

/** Answers in rounds over all learners, on another skill in each round. @param more fields of the i-th answer */
export const seedOf =
  (learners: number, skills: number, more: Seed = () => ({})): Seed =>
  (i) => ({
    user_id: learnerId(i % learners),
    skill_id: `skill-${(i + Math.floor(i / learners)) % skills}`,
    is_correct: (i * 7919) % 10 < 6,
    time_spent_seconds: 5 + (i % 90),
    ...more(i),
  });

const batchAnswers = 1000;
const atOnce = 4;

/** @throws StartError where one is refused */
export async function postAnswers(
  service: Service,
  tenant: string,
  tally: Tally,
  answers: number,
  seed: Seed,
): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < answers) {
      const from = next;
      next = Math.min(answers, from + batchAnswers);
      await post(
        service,
        tenant,
        Array.from({ length: next - from }, (_, i) => seed(from + i)),
      );
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  tally.acknowledged += answers;
}

/** Resolves when all are in ClickHouse too. @throws StartError where one is refused */
export async function seedAnswers(...given: Parameters<typeof postAnswers>): Promise<void> {
  await postAnswers(...given);
  const [service] = given;
  await service.hurried();
}

async function post({ port }: Service, key: string, events: readonly object[]): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/track-answers`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ events }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new StartError(`seeding: ${response.status} ${text.slice(0, 500)}`);
}
