import type { Call } from '../../contracts/access/call.js';
import { parseSkillBody } from '../../contracts/catalogue/skills.js';
import { parseJson } from '../../contracts/schema/json.js';
import { ApiError, preconditionFailed, rejectAsUnavailable } from '../../errors.js';
import type { SkillWrite, SkillWriteResult } from '../../store/catalogue/catalogue-store.js';
import { type StorageWaitPorts, waitUntilStored } from '../outbox/wait-until-stored.js';
import { findSkillModel, type SkillPorts, skillNotFound, tagSkill } from './read-skills.js';

export interface SkillWritePorts extends SkillPorts, StorageWaitPorts {
  /** Resolves when all readers see the change. @throws ApiError UNAVAILABLE */
  readonly catalogue: {
    writeSkill(tenant: string, write: SkillWrite, now: number): Promise<SkillWriteResult>;
  };
  countAnswers(tenant: string, skillId: string): Promise<number>;
}

export async function putSkill(ports: SkillWritePorts, { tenant, body, ifMatch }: Call, skillId: string) {
  const setting = parseSkillBody(parseJson(body));
  // An unknown skill has no tag.
  if (ifMatch !== null && (await findSkillModel(ports, tenant, skillId)) === null) throw preconditionFailed();
  const ifRevision = ifMatch === '*' ? null : ifMatch;
  const written = await ports.catalogue.writeSkill(tenant, { skillId, setting, ifRevision }, ports.now());
  if (written.status === 'written')
    return tagSkill(await ports.models.current(tenant), skillId, written.entry);
  if (written.status !== 'full') throw preconditionFailed();
  throw new ApiError(
    'LIMIT_EXCEEDED',
    'The tenant has reached its maximum number of skills (MAX_SKILLS_PER_TENANT); delete unused skills.',
  );
}

const minProtectedAnswers = 20;

/** Removes the settings but no answers. The skill is unknown until the next answer. */
export async function deleteSkill(ports: SkillWritePorts, { tenant, ifMatch }: Call, skillId: string) {
  if ((await findSkillModel(ports, tenant, skillId)) === null) throw skillNotFound();
  await waitUntilStored(ports);
  const answers = await rejectAsUnavailable(ports.countAnswers(tenant, skillId));
  if (answers >= minProtectedAnswers)
    throw new ApiError(
      'CONFLICT',
      `The skill has ${answers} answers. Only skills with fewer than ${minProtectedAnswers} answers can be deleted.`,
    );
  const write = { skillId, setting: null, ifRevision: ifMatch === '*' ? null : ifMatch };
  const { status } = await ports.catalogue.writeSkill(tenant, write, ports.now());
  if (status === 'mismatch') throw preconditionFailed();
  await ports.skills.unregister(tenant, skillId);
  return { skill_id: skillId, answers };
}
