import type { RedisClient } from '../src/store/client.js';
import { addKnownSkills } from '../src/store/known-skills.js';

/** Which skills a tenant's learners ever answered; forecasts need their number. */
export interface KnownSkills {
  /** Notes skills, before the answers on them are committed: a crash in between leaves one too many, never one too few. */
  add(client: RedisClient, answered: readonly NewSkills[]): Promise<void>;
}

/** Skills that a learner answers for the first time. */
interface NewSkills {
  readonly work: { readonly tenant: string };
  readonly plan: { readonly newSkills: readonly string[] };
}

/** Beyond this the memory of what was noted starts anew: noting a skill twice does no harm. */
const maxRemembered = 100_000;

export function createKnownSkills(): KnownSkills {
  const noted = new Set<string>();

  function freshOf(answered: readonly NewSkills[]): Map<string, Set<string>> {
    const fresh = new Map<string, Set<string>>();
    for (const { work, plan } of answered) {
      for (const skillId of plan.newSkills) {
        if (noted.has(`${work.tenant}:${skillId}`)) continue;
        fresh.set(work.tenant, (fresh.get(work.tenant) ?? new Set()).add(skillId));
      }
    }
    return fresh;
  }

  return {
    add: async (client, answered) => {
      const fresh = freshOf(answered);
      if (fresh.size === 0) return;
      await Promise.all([...fresh].map(([tenant, ids]) => addKnownSkills(client, tenant, [...ids])));
      if (noted.size > maxRemembered) noted.clear();
      for (const [tenant, ids] of fresh) for (const skillId of ids) noted.add(`${tenant}:${skillId}`);
    },
  };
}
