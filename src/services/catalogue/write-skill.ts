/** Setting a skill in the tenant's catalogue, and taking one off. */
import type { Call } from '../../contracts/call.js';
import { parseJson } from '../../contracts/json.js';
import type { Tagged } from '../../contracts/preconditions.js';
import { readSkillBody } from '../../contracts/skills.js';
import { ApiError, orUnavailable } from '../../errors.js';
import type { SkillWrite, SkillWritten } from '../../store/catalogue/catalogue-store.js';
import { preconditionFailed } from '../read/goals.js';
import { findSkill, type SkillPorts, skillNotFound, taggedSkill } from '../read/read-skills.js';
import { allStored, type StoringPorts } from '../read/stored.js';

export interface SkillWritePorts extends SkillPorts {
  /** Once it has resolved, every reader sees the change. @throws ApiError UNAVAILABLE */
  readonly catalogue: { put(tenant: string, write: SkillWrite, now: number): Promise<SkillWritten> };
  /** Unix milliseconds. */
  readonly now: () => number;
}

export interface SkillDeletePorts extends SkillWritePorts, StoringPorts {
  /** Answers of the tenant on the skill that are stored. @throws where the store is unavailable */
  answers(tenant: string, skillId: string): Promise<number>;
}

/**
 * Data of PUT /api/v1/skills/{skill_id}: the entry is replaced as a whole.
 * @throws ApiError INVALID_REQUEST, PRECONDITION_FAILED, LIMIT_EXCEEDED, UNAVAILABLE
 */
export async function putSkill(
  ports: SkillWritePorts,
  { tenant, body, ifMatch }: Call,
  skillId: string,
): Promise<Tagged<object>> {
  const setting = readSkillBody(parseJson(body));
  // A skill that nobody set or answered has no tag; one that is there has always one.
  if (ifMatch !== null && (await findSkill(ports, tenant, skillId)) === null) throw preconditionFailed();
  const ifRevision = ifMatch === '*' ? null : ifMatch;
  const written = await ports.catalogue.put(tenant, { skillId, setting, ifRevision }, ports.now());
  if (written.status === 'written')
    return taggedSkill(await ports.models.current(tenant), skillId, written.entry);
  if (written.status !== 'full') throw preconditionFailed();
  throw new ApiError('LIMIT_EXCEEDED', 'The tenant knows as many skills as a tenant may have');
}

/** From so many answers on a skill stays. */
const keptAnswers = 20;

/**
 * Data of DELETE /api/v1/skills/{skill_id}: what was set is taken off, and the skill is not known any more until a learner
 * answers it for the first time. Answers stay.
 * @throws ApiError SKILL_NOT_FOUND, CONFLICT, PRECONDITION_FAILED, UNAVAILABLE
 */
export async function deleteSkill(
  ports: SkillDeletePorts,
  { tenant, ifMatch }: Call,
  skillId: string,
): Promise<object> {
  if ((await findSkill(ports, tenant, skillId)) === null) throw skillNotFound();
  await allStored(ports);
  const answers = await orUnavailable(ports.answers(tenant, skillId));
  if (answers >= keptAnswers)
    throw new ApiError('CONFLICT', `The skill has ${answers} answers: with ${keptAnswers} or more it stays`);
  const write = { skillId, setting: null, ifRevision: ifMatch === '*' ? null : ifMatch };
  const { status } = await ports.catalogue.put(tenant, write, ports.now());
  if (status === 'mismatch') throw preconditionFailed();
  await ports.skills.forget(tenant, skillId);
  return { skill_id: skillId, answers };
}
