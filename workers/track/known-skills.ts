/** Which skills learners may begin, and the notes of who began them. */
import type { SkillLimits } from '../../src/contracts/tasks.js';
import { distinct } from '../../src/lists.js';
import { noteLearners, type SkillLearner, unknownBeyond } from '../../src/store/catalogue/known-skills.js';
import type { LoadedLearner } from '../../src/store/learners/learner-commands.js';
import { countSkills } from '../../src/store/learners/learner-reads.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import type { LearnerWork, SkillRoom } from './plan.js';

export type KnownSkills = ReturnType<typeof createKnownSkills>;

/** Skills that a learner answers for the first time. */
interface NewSkills {
  readonly work: { readonly tenant: string; readonly userId: string };
  readonly plan: { readonly newSkills: readonly string[] };
}

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

  async function note(client: RedisClient, tenant: string, pairs: readonly SkillLearner[]): Promise<void> {
    const { size, notRare } = await noteLearners(client, tenant, pairs);
    sizes.set(tenant, size);
    for (const skillId of notRare) common.add(`${tenant}:${skillId}`);
  }

  return {
    /** Notes who answered what, before the answers are committed: a crash leaves one too many, never one too few. */
    add: async (client: RedisClient, answered: readonly NewSkills[]): Promise<void> => {
      forgetOld();
      const byTenant = new Map<string, SkillLearner[]>();
      for (const { work, plan } of answered) {
        for (const skillId of plan.newSkills) {
          if (isCommon(work.tenant, skillId)) continue;
          const pairs = byTenant.get(work.tenant) ?? [];
          byTenant.set(work.tenant, pairs);
          pairs.push({ skillId, userId: work.userId });
        }
      }
      await Promise.all([...byTenant].map(([tenant, pairs]) => note(client, tenant, pairs)));
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

export interface SkillRoomParts {
  readonly client: RedisClient;
  readonly settings: { readonly skillLimits: SkillLimits };
  readonly knownSkills: KnownSkills;
}

export const roomEnough: SkillRoom = { skills: Number.POSITIVE_INFINITY, refused: none };

/** A learner with the skills that it may begin. */
interface Beginner {
  readonly work: LearnerWork;
  readonly begins: readonly string[];
  readonly attempts: number;
}

/**
 * The room of those learners who may begin a skill; `roomEnough` for the others. What the learner has is what it has when
 * the batch is committed, for nobody may write it in between; a tenant's limit may be passed by answers in flight.
 *
 * @param loaded in the order of `works`
 */
export async function skillRooms(
  parts: SkillRoomParts,
  works: readonly LearnerWork[],
  loaded: readonly LoadedLearner[],
): Promise<ReadonlyMap<LearnerWork, SkillRoom>> {
  const beginners = works.flatMap((work, i) => {
    const { learner, skills } = loaded[i] as LoadedLearner;
    const begins = work.skillIds.filter((_, skill) => !skills[skill]);
    return begins.length === 0 ? [] : [{ work, begins, attempts: learner?.attempts ?? 0 }];
  });
  if (isRoomForAll(parts, beginners)) return enoughForAll;
  const rooms = await Promise.all(beginners.map((beginner) => roomOf(parts, beginner)));
  // Learners without room of their own take none of their tenant's.
  const refused = await refusedSkills(
    parts,
    beginners.filter((_, i) => (rooms[i] as number) > 0),
  );
  return new Map(
    beginners.map(({ work }, i) => [
      work,
      { skills: rooms[i] as number, refused: refused.get(work.tenant) ?? none },
    ]),
  );
}

const enoughForAll: ReadonlyMap<LearnerWork, SkillRoom> = new Map();

/** Nearly always so; without a promise for each learner, which cost 2 % of an answer. */
function isRoomForAll(
  { settings: { skillLimits }, knownSkills }: SkillRoomParts,
  beginners: readonly Beginner[],
): boolean {
  const begun = new Map<string, number>();
  for (const { work, begins, attempts } of beginners) {
    if (!isRoomSure(skillLimits, work, attempts)) return false;
    begun.set(work.tenant, (begun.get(work.tenant) ?? 0) + begins.length);
  }
  return [...begun].every(([tenant, skills]) => knownSkills.hasRoom(tenant, skills, skillLimits.perTenant));
}

/** A learner has not more skills than answers. */
const isRoomSure = ({ perLearner }: SkillLimits, { events }: LearnerWork, attempts: number): boolean =>
  attempts + events.length <= perLearner;

async function roomOf({ client, settings }: SkillRoomParts, { work, attempts }: Beginner): Promise<number> {
  if (isRoomSure(settings.skillLimits, work, attempts)) return Number.POSITIVE_INFINITY;
  return settings.skillLimits.perLearner - (await countSkills(client, work));
}

/** By tenant. */
async function refusedSkills(
  { client, settings, knownSkills }: SkillRoomParts,
  beginners: readonly Beginner[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const tenants = distinct(beginners.map(({ work }) => work.tenant));
  const found = tenants.map(async (tenant) => {
    const own = beginners.filter(({ work }) => work.tenant === tenant);
    const begins = distinct(own.flatMap((beginner) => beginner.begins));
    const refused = await knownSkills.beyond(client, tenant, begins, settings.skillLimits.perTenant);
    return [tenant, refused] as const;
  });
  return new Map(await Promise.all(found));
}
