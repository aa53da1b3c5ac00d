/** Setting a skill in the tenant's catalogue. */
import { readSkillBody } from '../contracts/skills.js';
import type { SkillEntry } from '../domain/catalogue.js';
import { maxSkills } from '../domain/skill-setting.js';
import { invalid } from '../errors.js';
import { preconditionFailed } from './goals.js';
import type { CatalogueStore, IfMatch, Tagged } from './ports.js';
import { describeSkill, findSkill, type SkillPorts, tagOfSkill } from './read-skills.js';

export interface SkillWritePorts extends SkillPorts {
  readonly catalogue: CatalogueStore;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/**
 * Data of PUT /api/v1/skills/{skill_id}: the entry is replaced as a whole.
 *
 * @param body as it was sent
 * @throws ApiError INVALID_REQUEST, PRECONDITION_FAILED, UNAVAILABLE
 */
export async function putSkill(
  ports: SkillWritePorts,
  tenant: string,
  skillId: string,
  body: unknown,
  ifMatch: IfMatch,
): Promise<Tagged<object>> {
  const setting = readSkillBody(body);
  // A skill that nobody set or answered has no tag; one that is there has always one.
  if (ifMatch !== null && (await findSkill(ports, tenant, skillId)) === null) throw preconditionFailed();
  const ifRevision = ifMatch === '*' ? null : ifMatch;
  const written = await ports.catalogue.put(tenant, { skillId, setting, ifRevision }, ports.now());
  if (written.status === 'written') return describeWritten(ports, tenant, skillId, written.entry);
  throw written.status === 'full' ? catalogueFull() : preconditionFailed();
}

const catalogueFull = () =>
  invalid(
    `The catalogue is full: at most ${maxSkills.toLocaleString('en-US')} skills of a tenant can be set`,
  );

/** What was written, which may be replaced already. */
async function describeWritten(ports: SkillPorts, tenant: string, skillId: string, entry: SkillEntry) {
  const model = await ports.models.current(tenant);
  return {
    value: { ...describeSkill(model, skillId, entry), model_version: model.version },
    tag: tagOfSkill(entry),
  };
}
