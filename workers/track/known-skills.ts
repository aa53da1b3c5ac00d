/** Which skills learners may begin, and the notes of who began them. */

import type { SkillLimits } from '../../src/contracts/tasks.js';
import { distinct, groupedBy } from '../../src/lists.js';
import { noteLearners, unknownBeyond } from '../../src/store/catalogue/known-skills.js';
import type { LoadedLearner } from '../../src/store/learners/learner-commands.js';
import { countSkills } from '../../src/store/learners/learner-reads.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import type { SkillRoom } from './plan.js';
import type { LearnerWork } from './works.js';

export type KnownSkills = ReturnType<typeof createKnownSkills>;

/** Beyond this the memory is cleared: noting a skill again does no harm. */
const maxRemembered = 100_000;
/** A skill that was deleted is noted again when it is answered: the memory ends by itself. */
const rememberedMs = 60_000;

const none: ReadonlySet<string> = new Set();

/**
 * Notes which skills a tenant's learners ever answered; forecasts need the number of those that enough learners did.
 * @param now monotonic clock in milliseconds
 */
export function createKnownSkills(now = () => performance.now()) {
  /** Enough learners answered them: they need no note. */
  const common = new Set<string>();
  /** How many skills a tenant knew when this thread last asked. */
  const sizes = new Map<string, number>();
  let since = now();

  function forgetOld(): void {
    if (now() - since < rememberedMs && common.size + sizes.size <= maxRemembered) return;
    common.clear();
    sizes.clear();
    since = now();
  }

  const isCommon = (tenant: string, skillId: string): boolean => common.has(`${tenant}:${skillId}`);

  /** Whether the tenant surely has room for so many skills. @param limit most skills that it may know */
  const hasRoom = (tenant: string, skills: number, limit: number): boolean =>
    (sizes.get(tenant) ?? limit) + skills <= limit;

  return {
    /**
     * Notes who answered skills for the first time, before the answers are committed: a crash leaves one too many, never
     * one too few.
     */
    add: async (
      client: RedisClient,
      answered: readonly {
        readonly work: { readonly tenant: string; readonly userId: string };
        readonly plan: { readonly newSkills: readonly string[] };
      }[],
    ): Promise<void> => {
      forgetOld();
      const pairs: { tenant: string; skillId: string; userId: string }[] = [];
      for (const { work, plan } of answered)
        for (const skillId of plan.newSkills)
          if (!isCommon(work.tenant, skillId))
            pairs.push({ tenant: work.tenant, skillId, userId: work.userId });
      const notes = [...groupedBy(pairs, ({ tenant }) => tenant)].map(async ([tenant, own]) => {
        const { size, notRare } = await noteLearners(client, tenant, own);
        sizes.set(tenant, size);
        for (const skillId of notRare) common.add(`${tenant}:${skillId}`);
      });
      await Promise.all(notes);
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

export const roomEnough: SkillRoom = { skills: Number.POSITIVE_INFINITY, refused: none };

interface SkillRoomParts {
  readonly client: RedisClient;
  readonly settings: { readonly skillLimits: SkillLimits };
  readonly knownSkills: KnownSkills;
}

/**
 * The room of learners who may begin a skill; `roomEnough` for those who are not in it. What the learner has is what it has
 * when the batch is committed, for nobody may write it in between; a tenant's limit may be passed by answers in flight.
 *
 * @param loaded in the order of `works`
 */
export async function skillRooms(
  { client, settings: { skillLimits }, knownSkills }: SkillRoomParts,
  works: readonly LearnerWork[],
  loaded: readonly LoadedLearner[],
): Promise<ReadonlyMap<LearnerWork, SkillRoom>> {
  const { perLearner, perTenant } = skillLimits;
  const beginners = works.flatMap((work, i) => {
    const { learner, skills } = loaded[i] as LoadedLearner;
    const begins = work.skillIds.filter((_, skill) => !skills[skill]);
    // A learner has not more skills than answers.
    const isSure = (learner?.attempts ?? 0) + work.events.length <= perLearner;
    return begins.length === 0 ? [] : [{ work, begins, isSure }];
  });
  const rooms = new Map<LearnerWork, SkillRoom>();
  for (const [tenant, own] of groupedBy(beginners, ({ work }) => work.tenant)) {
    const begun = own.reduce((sum, { begins }) => sum + begins.length, 0);
    // Nearly always so; a promise for each learner would cost 2 % of an answer.
    if (own.every(({ isSure }) => isSure) && knownSkills.hasRoom(tenant, begun, perTenant)) continue;
    const skills = await Promise.all(
      own.map(({ work, isSure }) =>
        isSure ? Number.POSITIVE_INFINITY : countSkills(client, work).then((count) => perLearner - count),
      ),
    );
    // Learners without room of their own take none of their tenant's.
    const open = distinct(own.flatMap(({ begins }, i) => ((skills[i] as number) > 0 ? begins : [])));
    const refused = await knownSkills.beyond(client, tenant, open, perTenant);
    own.forEach(({ work }, i) => {
      rooms.set(work, { skills: skills[i] as number, refused });
    });
  }
  return rooms;
}
