import { noteLearners, type SkillLearner, unknownBeyond } from '../../src/store/catalogue/known-skills.js';
import type { RedisClient } from '../../src/store/redis/client.js';

export type KnownSkills = ReturnType<typeof createKnownSkills>;

/** Skills that a learner answers for the first time. */
interface NewSkills {
  readonly work: { readonly tenant: string; readonly userId: string };
  readonly plan: { readonly newSkills: readonly string[] };
}

/** Beyond this the memory of what needs no note starts anew: noting a skill again does no harm. */
const maxRemembered = 100_000;
/** A skill that was deleted is noted again when it is answered: what is remembered of it ends by itself. */
const rememberedMs = 60_000;

const none: ReadonlySet<string> = new Set();

/**
 * Which skills a tenant's learners ever answered; forecasts need the number of those that enough learners did.
 * @param now monotonic clock in milliseconds
 */
export function createKnownSkills(now = () => performance.now()) {
  /** Enough learners answered them. */
  const common = new Set<string>();
  /** How many skills a tenant knew when this thread last heard of it. */
  const sizes = new Map<string, number>();
  let since = now();

  function forgetOld(): void {
    if (now() - since < rememberedMs && common.size + sizes.size <= maxRemembered) return;
    common.clear();
    sizes.clear();
    since = now();
  }

  /** Whether the tenant surely has room for so many skills. @param limit most skills that it may know */
  const hasRoom = (tenant: string, skills: number, limit: number): boolean =>
    (sizes.get(tenant) ?? limit) + skills <= limit;

  const isCommon = (tenant: string, skillId: string): boolean => common.has(`${tenant}:${skillId}`);

  function toNote(answered: readonly NewSkills[]): Map<string, SkillLearner[]> {
    const byTenant = new Map<string, SkillLearner[]>();
    for (const { work, plan } of answered) {
      const { tenant, userId } = work;
      for (const skillId of plan.newSkills) {
        if (isCommon(tenant, skillId)) continue;
        const pairs = byTenant.get(tenant) ?? [];
        byTenant.set(tenant, pairs);
        pairs.push({ skillId, userId });
      }
    }
    return byTenant;
  }

  async function note(client: RedisClient, tenant: string, pairs: readonly SkillLearner[]): Promise<void> {
    const { size, notRare } = await noteLearners(client, tenant, pairs);
    sizes.set(tenant, size);
    for (const skillId of notRare) common.add(`${tenant}:${skillId}`);
  }

  return {
    /** Notes who answered what, before the answers are committed: a crash leaves one too many, never one too few. */
    add: async (client: RedisClient, answered: readonly NewSkills[]): Promise<void> => {
      forgetOld();
      await Promise.all([...toNote(answered)].map(([tenant, pairs]) => note(client, tenant, pairs)));
    },
    hasRoom,
    /** Those of the skills that the tenant does not know and has no room for, where it may know `limit` at most. */
    beyond: async (client: RedisClient, tenant: string, skillIds: readonly string[], limit: number) => {
      if (hasRoom(tenant, skillIds.length, limit)) return none;
      const open = skillIds.filter((skillId) => !isCommon(tenant, skillId));
      if (open.length === 0) return none;
      const { size, refused } = await unknownBeyond(client, tenant, open, limit);
      sizes.set(tenant, size);
      return new Set(refused);
    },
  };
}
