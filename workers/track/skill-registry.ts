import { maxQuestionSkills } from '../../src/contracts/answers/events.js';
import type { SkillLimits } from '../../src/contracts/settings/worker-settings.js';
import { distinct, groupBy } from '../../src/lists.js';
import { findExcessSkills, recordLearners } from '../../src/store/catalogue/registered-skills.js';
import type { LoadedLearner } from '../../src/store/learners/learner-commands.js';
import { countSkills } from '../../src/store/learners/learner-reads.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import type { LearnerEvents } from './read-events.js';

export type NewSkill = { readonly tenant: string; readonly userId: string; readonly skillId: string };

export interface SkillAllowance {
  readonly maxNewSkills: number;
  /** Skills that are new to the tenant and exceed its limit. */
  readonly rejectedSkills: ReadonlySet<string>;
}

/** Skills that this thread knows to be registered. Registering one again is harmless. */
const maxCachedEntries = 100_000;
/** Entries expire, so that an answer registers a deleted skill again. */
const cacheMs = 60_000;

const noSkills: ReadonlySet<string> = new Set();

/**
 * Registers skills at their first answer and enforces the limits of skills per learner and tenant. A rare skill
 * is registered with its learners; from five learners on it is common and needs no registration.
 */
export class SkillRegistry {
  /** Answered by enough learners to need no registration. */
  private readonly commonSkills = new Set<string>();
  private readonly skillCounts = new Map<string, number>();
  private cachedSince = performance.now();

  constructor(private readonly limits: SkillLimits) {}

  /** Call before the commit. After a crash a skill may have no answer, but every answer has its skill. */
  async register(client: RedisClient, newSkills: readonly NewSkill[]): Promise<void> {
    this.expireEntries();
    const uncommon = newSkills.filter(({ tenant, skillId }) => !this.isCommon(tenant, skillId));
    const registrations = [...groupBy(uncommon, ({ tenant }) => tenant)].map(
      async ([tenant, tenantSkills]) => {
        const { size, notRare } = await recordLearners(client, tenant, tenantSkills);
        this.skillCounts.set(tenant, size);
        for (const skillId of notRare) this.commonSkills.add(`${tenant}:${skillId}`);
      },
    );
    await Promise.all(registrations);
  }

  /** Learners without an entry have enough room. Concurrent batches may exceed a tenant's limit. */
  async computeAllowances(
    client: RedisClient,
    learners: readonly LearnerEvents[],
    loaded: readonly LoadedLearner[],
  ): Promise<ReadonlyMap<LearnerEvents, SkillAllowance>> {
    const { perLearner } = this.limits;
    const candidates = learners.flatMap((learnerEvents, i) => {
      const { learner, skills } = loaded[i] as LoadedLearner;
      const newSkillIds = learnerEvents.skillIds.filter((_, index) => !skills[index]);
      const mostKnown = maxQuestionSkills * (learner?.attempts ?? 0);
      const isWithinLimit = mostKnown + newSkillIds.length <= perLearner;
      return newSkillIds.length === 0 ? [] : [{ learnerEvents, newSkillIds, isWithinLimit }];
    });
    const allowances = new Map<LearnerEvents, SkillAllowance>();
    for (const [tenant, learnersOfTenant] of groupBy(candidates, (one) => one.learnerEvents.tenant)) {
      const newSkillCount = learnersOfTenant.reduce((sum, { newSkillIds }) => sum + newSkillIds.length, 0);
      // Usual case: a promise per learner would cost 2 % of an answer.
      if (learnersOfTenant.every((one) => one.isWithinLimit) && this.hasRoom(tenant, newSkillCount)) continue;
      const rooms = await Promise.all(
        learnersOfTenant.map(async ({ learnerEvents, isWithinLimit }) =>
          isWithinLimit ? Number.POSITIVE_INFINITY : perLearner - (await countSkills(client, learnerEvents)),
        ),
      );
      // Learners without room do not use up the tenant's room.
      const skillIds = distinct(
        learnersOfTenant.flatMap(({ newSkillIds }, i) => ((rooms[i] as number) > 0 ? newSkillIds : [])),
      );
      const rejectedSkills = await this.findRejected(client, tenant, skillIds);
      learnersOfTenant.forEach(({ learnerEvents }, i) => {
        allowances.set(learnerEvents, { maxNewSkills: rooms[i] as number, rejectedSkills });
      });
    }
    return allowances;
  }

  private async findRejected(client: RedisClient, tenant: string, skillIds: readonly string[]) {
    if (this.hasRoom(tenant, skillIds.length)) return noSkills;
    const uncommon = skillIds.filter((skillId) => !this.isCommon(tenant, skillId));
    if (uncommon.length === 0) return noSkills;
    const { size, excess } = await findExcessSkills(client, tenant, uncommon, this.limits.perTenant);
    this.skillCounts.set(tenant, size);
    return new Set(excess);
  }

  private hasRoom(tenant: string, skills: number): boolean {
    const { perTenant } = this.limits;
    return (this.skillCounts.get(tenant) ?? perTenant) + skills <= perTenant;
  }

  private isCommon(tenant: string, skillId: string): boolean {
    return this.commonSkills.has(`${tenant}:${skillId}`);
  }

  private expireEntries(): void {
    const isRecent = performance.now() - this.cachedSince < cacheMs;
    if (isRecent && this.commonSkills.size + this.skillCounts.size <= maxCachedEntries) return;
    this.commonSkills.clear();
    this.skillCounts.clear();
    this.cachedSince = performance.now();
  }
}
