/** Rows of made-up learners who learn by BKT with known parameters. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { BktParameters } from '../../../src/domain/base/bkt-parameters.js';
import { seeded } from './random.js';

export interface MadeSkill {
  readonly skillId: string;
  readonly learners: number;
  readonly parameters: BktParameters;
}

const start = Date.UTC(2026, 0, 15, 12);

/** The first `learners` learners answer `perSkill` questions of each skill. */
export function madeAnswers(tenant: string, skills: readonly MadeSkill[], perSkill: number, seed: number) {
  const random = seeded(seed);
  const sequences = new Map<string, number>();
  return skills.flatMap(({ skillId, learners, parameters }) =>
    Array.from({ length: learners }, (_, learner) => `learner-${learner}`).flatMap((userId) => {
      let mastered = random() < parameters.pInit;
      return Array.from({ length: perSkill }, () => {
        const right = random() < (mastered ? 1 - parameters.pSlip : parameters.pGuess);
        mastered ||= random() < parameters.pLearn;
        const seq = (sequences.get(userId) ?? 0) + 1;
        sequences.set(userId, seq);
        return {
          ...{ tenant, user_id: userId, skill_id: skillId, is_correct: right ? 1 : 0, learner_seq: seq },
          item_id: `${skillId}-item-${Math.floor(random() * 20)}`,
          time_spent_seconds: 20 + Math.floor(random() * 60),
          ...{ occurred_at: start / 1000 + 60 * seq, received_at: start / 1000 },
        };
      });
    }),
  );
}

export async function storeAnswers(client: ClickHouseClient, rows: readonly object[]): Promise<void> {
  await client.insert({ table: 'attempts', format: 'JSONEachRow', values: rows });
}
