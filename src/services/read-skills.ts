import Type, { type Static } from 'typebox';
import { timeNorm } from '../domain/efficiency.js';
import { round1, round4 } from '../domain/probability.js';
import { rapidThreshold } from '../domain/rapid.js';
import {
  type ParameterSource,
  type SkillModel,
  type SkillTimes,
  skillModelOf,
} from '../domain/tenant-model.js';
import { ApiError, invalid } from '../errors.js';
import { decodeCursor, pageOfIds } from './id-pages.js';
import type { ModelReader, SkillDirectory } from './ports.js';

/** Query of GET /api/v1/skills. */
export const SkillsQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 1000, default: 100 }),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the page before' })),
});
export type SkillsQuery = Static<typeof SkillsQuery>;

export interface SkillPorts {
  readonly models: ModelReader;
  readonly skills: SkillDirectory;
}

/**
 * Data of GET /api/v1/skills: skills that were ever answered and those in the model, by UTF-8 bytes of their ids.
 * @throws ApiError INVALID_REQUEST, UNAVAILABLE
 */
export async function listSkills(ports: SkillPorts, tenant: string, query: SkillsQuery): Promise<object> {
  const after = query.cursor === undefined ? null : idOf(query.cursor);
  const [answered, model] = await Promise.all([ports.skills.list(tenant), ports.models.current(tenant)]);
  const { ids, nextCursor } = pageOfIds(new Set([...answered, ...model.skills.keys()]), after, query.limit);
  return {
    skills: ids.map((skillId) => describeSkill(skillId, skillModelOf(model, skillId))),
    next_cursor: nextCursor,
    model_version: model.version,
  };
}

function idOf(cursor: string): string {
  const id = decodeCursor(cursor);
  if (id !== null) return id;
  const message = 'must be the next_cursor of an earlier page';
  throw invalid(`Invalid query: cursor ${message}`, [{ path: 'cursor', message }]);
}

/** Data of GET /api/v1/skills/{skill_id}. @throws ApiError SKILL_NOT_FOUND, UNAVAILABLE */
export async function readSkill(ports: SkillPorts, tenant: string, skillId: string): Promise<object> {
  const [isAnswered, model] = await Promise.all([
    ports.skills.has(tenant, skillId),
    ports.models.current(tenant),
  ]);
  if (!isAnswered && !model.skills.has(skillId)) {
    throw new ApiError('SKILL_NOT_FOUND', 'No answer on this skill_id was counted');
  }
  return { ...describeSkill(skillId, skillModelOf(model, skillId)), model_version: model.version };
}

/** A skill as the answers show it; without a catalogue it has no name, no section and weight 1. */
const describeSkill = (skillId: string, skill: SkillModel): object => ({
  skill_id: skillId,
  name: null,
  section: null,
  weight: 1,
  parameters: describeParameters(skill),
  origin: origins[skill.source],
  learners: skill.learners,
  answers: skill.answers,
  rapid_threshold_seconds: round1(rapidThreshold(skill.times)),
  typical_seconds: typicalSeconds(skill.times),
});

const origins: Readonly<Record<ParameterSource, string>> = {
  default: 'defaults',
  prior: 'tenant_prior',
  fitted: 'fit',
  manual: 'manual',
};

/** The four parameters in force. The tenant's prior is a default to callers: nobody fitted the skill itself. */
export const describeParameters = ({ parameters, source, version, fittedAt }: SkillModel): object => ({
  p_init: round4(parameters.pInit),
  p_learn: round4(parameters.pLearn),
  p_guess: round4(parameters.pGuess),
  p_slip: round4(parameters.pSlip),
  source: source === 'prior' ? 'default' : source,
  version,
  fitted_at: fittedAt,
});

/** Median of the log-normal time norm; null where no time was measured. */
const typicalSeconds = (times: SkillTimes): number | null =>
  times.answers === 0 ? null : round1(Math.exp(timeNorm(times).logMean));
