import type { SkillLimits } from '../../src/contracts/worker-tasks.js';
import { distinct, groupBy } from '../../src/lists.js';
import { findExcessSkills, recordLearners } from '../../src/store/catalogue/registered-skills.js';
import type { LoadedLearner } from '../../src/store/learners/learner-commands.js';
import { countSkills } from '../../src/store/learners/learner-reads.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import type { LearnerWork } from './read-events.js';

export type NewSkill = { readonly tenant: string; readonly userId: string; readonly skillId: string };

export interface SkillRoom {
  readonly skills: number;
  /** Skills that are new to the tenant and exceed its limit. */
  readonly refused: ReadonlySet<string>;
}

/** Limit of remembered entries. Registering a skill again is harmless. */
const maxRemembered = 100_000;
/** Entries expire, so that an answer registers a deleted skill again. */
const rememberedMs = 60_000;

const none: ReadonlySet<string> = new Set();

export class KnownSkills {
  /** Answered by enough learners to need no registration. */
  private readonly common = new Set<string>();
  private readonly sizes = new Map<string, number>();
  private since = performance.now();

  constructor(private readonly limits: SkillLimits) {}

  /** Call before the commit. After a crash a skill may have no answer, but every answer has its skill. */
  async note(client: RedisClient, begun: readonly NewSkill[]): Promise<void> {
    this.forgetOld();
    const open = begun.filter(({ tenant, skillId }) => !this.isCommon(tenant, skillId));
    const notes = [...groupBy(open, ({ tenant }) => tenant)].map(async ([tenant, own]) => {
      const { size, notRare } = await recordLearners(client, tenant, own);
      this.sizes.set(tenant, size);
      for (const skillId of notRare) this.common.add(`${tenant}:${skillId}`);
    });
    await Promise.all(notes);
  }

  /** Learners without an entry have enough room. Concurrent batches may exceed a tenant's limit. */
  async rooms(
    client: RedisClient,
    works: readonly LearnerWork[],
    loaded: readonly LoadedLearner[],
  ): Promise<ReadonlyMap<LearnerWork, SkillRoom>> {
    const { perLearner } = this.limits;
    const beginners = works.flatMap((work, i) => {
      const { learner, skills } = loaded[i] as LoadedLearner;
      const begins = work.skillIds.filter((_, skill) => !skills[skill]);
      // A learner has at most as many skills as answers.
      const isSure = (learner?.attempts ?? 0) + work.events.length <= perLearner;
      return begins.length === 0 ? [] : [{ work, begins, isSure }];
    });
    const rooms = new Map<LearnerWork, SkillRoom>();
    for (const [tenant, own] of groupBy(beginners, ({ work }) => work.tenant)) {
      const begun = own.reduce((sum, { begins }) => sum + begins.length, 0);
      // Usual case: a promise per learner would cost 2 % of an answer.
      if (own.every(({ isSure }) => isSure) && this.hasRoom(tenant, begun)) continue;
      const skills = await Promise.all(
        own.map(async ({ work, isSure }) =>
          isSure ? Number.POSITIVE_INFINITY : perLearner - (await countSkills(client, work)),
        ),
      );
      // Learners without room do not use up the tenant's room.
      const open = distinct(own.flatMap(({ begins }, i) => ((skills[i] as number) > 0 ? begins : [])));
      const refused = await this.refused(client, tenant, open);
      own.forEach(({ work }, i) => {
        rooms.set(work, { skills: skills[i] as number, refused });
      });
    }
    return rooms;
  }

  private async refused(client: RedisClient, tenant: string, skillIds: readonly string[]) {
    if (this.hasRoom(tenant, skillIds.length)) return none;
    const open = skillIds.filter((skillId) => !this.isCommon(tenant, skillId));
    if (open.length === 0) return none;
    const { size, excess } = await findExcessSkills(client, tenant, open, this.limits.perTenant);
    this.sizes.set(tenant, size);
    return new Set(excess);
  }

  private hasRoom(tenant: string, skills: number): boolean {
    const { perTenant } = this.limits;
    return (this.sizes.get(tenant) ?? perTenant) + skills <= perTenant;
  }

  private isCommon(tenant: string, skillId: string): boolean {
    return this.common.has(`${tenant}:${skillId}`);
  }

  private forgetOld(): void {
    const isRecent = performance.now() - this.since < rememberedMs;
    if (isRecent && this.common.size + this.sizes.size <= maxRemembered) return;
    this.common.clear();
    this.sizes.clear();
    this.since = performance.now();
  }
}
