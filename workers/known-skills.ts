import type { RedisClient } from '../src/store/client.js';
import { addKnownSkills } from '../src/store/learner-store.js';

/** Which skills a tenant's learners ever answered; forecasts need their number. */
export interface KnownSkills {
  /** Notes skills, before the answers on them are committed: a crash in between leaves one too many, never one too few. */
  add(
    client: RedisClient,
    skills: readonly { readonly tenant: string; readonly skillId: string }[],
  ): Promise<void>;
}

/** Beyond this the memory of what was noted starts anew: noting a skill twice does no harm. */
const maxRemembered = 100_000;

export function createKnownSkills(): KnownSkills {
  const noted = new Set<string>();
  return {
    add: async (client, skills) => {
      const fresh = new Map<string, Set<string>>();
      for (const { tenant, skillId } of skills) {
        if (noted.has(`${tenant}:${skillId}`)) continue;
        fresh.set(tenant, (fresh.get(tenant) ?? new Set()).add(skillId));
      }
      await Promise.all([...fresh].map(([tenant, ids]) => addKnownSkills(client, tenant, [...ids])));
      if (noted.size > maxRemembered) noted.clear();
      for (const [tenant, ids] of fresh) for (const skillId of ids) noted.add(`${tenant}:${skillId}`);
    },
  };
}
