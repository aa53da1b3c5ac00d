/** Whether learners may begin further skills: asked for seldom, where a learner or a tenant has nearly as many as it may. */
import type { SkillLimits } from '../../src/contracts/tasks.js';
import { countSkills } from '../../src/store/learners/learner-reads.js';
import type { LoadedLearner } from '../../src/store/learners/learner-records.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import type { KnownSkills } from './known-skills.js';
import type { LearnerWork, SkillRoom } from './plan.js';
import { distinct } from './track-needs.js';

export interface SkillRoomParts {
  readonly client: RedisClient;
  readonly settings: { readonly skillLimits: SkillLimits };
  readonly knownSkills: KnownSkills;
}

export const roomEnough: SkillRoom = { skills: Number.POSITIVE_INFINITY, refused: new Set() };

/** A learner with the skills that it may begin. */
interface Beginner {
  readonly work: LearnerWork;
  readonly begins: readonly string[];
  readonly attempts: number;
}

/**
 * The room of those learners who may begin a skill. What the learner has is what it has when the batch is committed, for
 * nobody may write it in between; a tenant's limit may be passed by answers in flight.
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
      { skills: rooms[i] as number, refused: refused.get(work.tenant) ?? roomEnough.refused },
    ]),
  );
}

const enoughForAll: ReadonlyMap<LearnerWork, SkillRoom> = new Map();

/** So nearly always; that is told without a promise for each learner, which cost 2 % of an answer. */
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
