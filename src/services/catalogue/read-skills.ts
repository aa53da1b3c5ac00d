import type { Call } from '../../contracts/access/call.js';
import type { TaggedValue } from '../../contracts/schema/preconditions.js';
import { round1, round4 } from '../../domain/base/common.js';
import { defaultSkillSetting, type SkillEntry } from '../../domain/catalogue/catalogue.js';
import { resolveSkillModel, type SkillModel, type TenantModel } from '../../domain/catalogue/tenant-model.js';
import {
  computeRapidThreshold,
  computeSkillNorm,
  type SkillTimes,
} from '../../domain/tracing/response-times.js';
import { ApiError } from '../../errors.js';
import type { RegisteredSkills } from '../../store/catalogue/registered-skills.js';
import {
  buildPage,
  decodeIdCursor,
  defaultPageLimit,
  encodeIdCursor,
  encodeList,
  type PageQuery,
} from '../paging/pages.js';

export interface ModelPorts {
  /** Version 0 before the first fit. @throws ApiError UNAVAILABLE */
  readonly models: { current(tenant: string): Promise<TenantModel> };
}

/** All throw ApiError UNAVAILABLE. */
export interface SkillPorts extends ModelPorts {
  readonly skills: RegisteredSkills;
}

export async function listSkills(
  ports: SkillPorts,
  { tenant, query: { limit = defaultPageLimit, cursor } }: Call<PageQuery>,
): Promise<string> {
  const after = decodeIdCursor(cursor);
  const [skillIds, model] = await Promise.all([
    ports.skills.list(tenant, after, limit + 1),
    ports.models.current(tenant),
  ]);
  const describe = (skillId: string) => describeSkill(model, skillId, model.catalogue.entries.get(skillId));
  return encodeList(
    { model_version: model.version },
    'skills',
    buildPage(skillIds, limit, encodeIdCursor),
    describe,
  );
}

export async function readSkill(ports: SkillPorts, { tenant }: Call, skillId: string) {
  const model = await findSkillModel(ports, tenant, skillId);
  if (model === null) throw skillNotFound();
  return tagSkill(model, skillId, model.catalogue.entries.get(skillId));
}

/** The tag changes with the entry, not with fits. */
export const tagSkill = (
  model: TenantModel,
  skillId: string,
  entry: SkillEntry | undefined,
): TaggedValue<object> => ({
  value: { ...describeSkill(model, skillId, entry), model_version: model.version },
  tag: `${entry?.revision ?? 0}`,
});

export const skillNotFound = () =>
  new ApiError('SKILL_NOT_FOUND', 'Unknown skill_id: no answers and no configuration.');

export async function findSkillModel(
  { models, skills }: SkillPorts,
  tenant: string,
  skillId: string,
): Promise<TenantModel | null> {
  const [isRegistered, model] = await Promise.all([skills.has(tenant, skillId), models.current(tenant)]);
  return isRegistered || model.skills.has(skillId) || model.catalogue.entries.has(skillId) ? model : null;
}

function describeSkill(model: TenantModel, skillId: string, entry: SkillEntry | undefined): object {
  const skill = resolveSkillModel(model, skillId);
  const { name, section, weight } = entry ?? defaultSkillSetting;
  return {
    skill_id: skillId,
    name,
    section,
    weight,
    parameters: describeParameters(skill),
    origin: origins[skill.source],
    learners: skill.learners,
    answers: skill.answers,
    rapid_threshold_seconds: round1(computeRapidThreshold(skill.times)),
    typical_seconds: computeTypicalSeconds(skill.times),
    updated_at: entry === undefined ? null : new Date(entry.updatedAt).toISOString(),
  };
}

const origins = { default: 'defaults', prior: 'tenant_prior', fitted: 'fit', manual: 'manual' } as const;

export const describeParameters = ({ parameters, source, version, fittedAt }: SkillModel): object => ({
  p_init: round4(parameters.pInit),
  p_learn: round4(parameters.pLearn),
  p_guess: round4(parameters.pGuess),
  p_slip: round4(parameters.pSlip),
  p_forget: round4(parameters.pForget),
  source: source === 'prior' ? 'default' : source,
  version,
  fitted_at: fittedAt,
});

/** Median of the log-normal time norm; null without measured times. */
const computeTypicalSeconds = (times: SkillTimes): number | null =>
  times.answers === 0 ? null : round1(Math.exp(computeSkillNorm(times).logMean));
