import type { RedisClient } from '../src/store/client.js';
import { noteLearners, type SkillLearner } from '../src/store/known-skills.js';

/** Which skills a tenant's learners ever answered; forecasts need the number of those that enough learners did. */
export interface KnownSkills {
  /** Notes who answered what, before the answers are committed: a crash in between leaves one too many, never one too few. */
  add(client: RedisClient, answered: readonly NewSkills[]): Promise<void>;
}

/** Skills that a learner answers for the first time. */
interface NewSkills {
  readonly work: { readonly tenant: string; readonly userId: string };
  readonly plan: { readonly newSkills: readonly string[] };
}

/** Beyond this the memory of what needs no note starts anew: noting a skill again does no harm. */
const maxRemembered = 100_000;

export function createKnownSkills(): KnownSkills {
  /** Enough learners answered them. */
  const common = new Set<string>();

  function toNote(answered: readonly NewSkills[]): Map<string, SkillLearner[]> {
    const byTenant = new Map<string, SkillLearner[]>();
    for (const { work, plan } of answered) {
      const { tenant, userId } = work;
      for (const skillId of plan.newSkills) {
        if (common.has(`${tenant}:${skillId}`)) continue;
        const pairs = byTenant.get(tenant) ?? [];
        byTenant.set(tenant, pairs);
        pairs.push({ skillId, userId });
      }
    }
    return byTenant;
  }

  async function note(client: RedisClient, tenant: string, pairs: readonly SkillLearner[]): Promise<void> {
    const found = await noteLearners(client, tenant, pairs);
    if (common.size > maxRemembered) common.clear();
    for (const skillId of found) common.add(`${tenant}:${skillId}`);
  }

  return {
    add: async (client, answered) => {
      await Promise.all([...toNote(answered)].map(([tenant, pairs]) => note(client, tenant, pairs)));
    },
  };
}
