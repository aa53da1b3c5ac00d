/** Whether learners may begin further skills: asked for seldom, where a learner or a tenant has nearly as many as it may. */
import type { SkillLimits } from '../src/contracts/tasks.js';
import type { RedisClient } from '../src/store/client.js';
import { countSkills } from '../src/store/learner-reads.js';
import type { LoadedLearner } from '../src/store/learner-records.js';
import type { KnownSkills } from './known-skills.js';
import type { LearnerWork, SkillRoom } from './plan.js';

export interface SkillRoomParts {
  readonly client: RedisClient;
  readonly settings: { readonly skillLimits: SkillLimits };
  readonly knownSkills: KnownSkills;
}

export const roomEnough: SkillRoom = { skills: Number.POSITIVE_INFINITY, refused: new Set() };

/**
 * The room of those learners who may not have enough; of the others nothing. What the learner has is what it has when the
 * batch is committed, for nobody may write it in between; a tenant's limit may be passed by answers in flight.
 *
 * @param loaded in the order of `works`
 */
export async function skillRooms(
  parts: SkillRoomParts,
  works: readonly LearnerWork[],
  loaded: readonly LoadedLearner[],
): Promise<ReadonlyMap<LearnerWork, SkillRoom>> {
  const beginning = works.flatMap((work, i) => {
    const { learner, skills } = loaded[i] as LoadedLearner;
    const begins = work.skillIds.filter((_, skill) => !skills[skill]);
    return begins.length === 0 ? [] : [{ work, begins, attempts: learner?.attempts ?? 0 }];
  });
  if (beginning.length === 0) return new Map();
  const refused = await refusedSkills(parts, beginning);
  const rooms = beginning.map(async ({ work, begins, attempts }) => {
    const skills = await roomOf(parts, work, attempts);
    const none = refused.get(work.tenant) ?? roomEnough.refused;
    return begins.length <= skills && none.size === 0 ? [] : [[work, { skills, refused: none }] as const];
  });
  return new Map((await Promise.all(rooms)).flat());
}

/** A learner has not more skills than answers. */
async function roomOf(
  { client, settings }: SkillRoomParts,
  work: LearnerWork,
  attempts: number,
): Promise<number> {
  const { perLearner } = settings.skillLimits;
  if (attempts + work.events.length <= perLearner) return Number.POSITIVE_INFINITY;
  return perLearner - (await countSkills(client, work));
}

/** By tenant. */
async function refusedSkills(
  { client, settings, knownSkills }: SkillRoomParts,
  beginning: readonly { readonly work: LearnerWork; readonly begins: readonly string[] }[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const byTenant = new Map<string, Set<string>>();
  for (const { work, begins } of beginning) {
    const skills = byTenant.get(work.tenant) ?? new Set();
    byTenant.set(work.tenant, skills);
    for (const skillId of begins) skills.add(skillId);
  }
  const { perTenant } = settings.skillLimits;
  const found = [...byTenant].map(
    async ([tenant, skills]) =>
      [tenant, await knownSkills.beyond(client, tenant, [...skills], perTenant)] as const,
  );
  return new Map(await Promise.all(found));
}
