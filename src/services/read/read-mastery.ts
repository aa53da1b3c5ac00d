import { round1, round4 } from '../../domain/base/probability.js';
import type { Section } from '../../domain/base/types.js';
import { placementOf } from '../../domain/catalogue/catalogue.js';
import { type SkillModel, skillModelOf, type TenantModel } from '../../domain/catalogue/tenant-model.js';
import { calibration } from '../../domain/tracing/calibration.js';
import { effectiveMastery } from '../../domain/tracing/forgetting.js';
import { correctPerMinute, efficiencyIndex } from '../../domain/tracing/pace.js';
import { isPlateau } from '../../domain/tracing/plateau.js';
import { isMastered, type LearnerState, type SkillState } from '../../domain/tracing/states.js';
import { ApiError } from '../../errors.js';
import { idAfter, type PageQuery, pageLimit, pageOfIds, sortedAfter, tellList } from './pages.js';

/** All throw ApiError UNAVAILABLE. */
export interface MasteryPorts {
  readonly learners: {
    /** Null where the learner has no counted answer. */
    read(
      tenant: string,
      userId: string,
    ): Promise<{ learner: LearnerState; skills: ReadonlyMap<string, SkillState> } | null>;
    /** The same without the skills, of which there may be thousands. */
    own(tenant: string, userId: string): Promise<LearnerState | null>;
  };
  /** The model in force; version 0 before the first fit. */
  readonly models: { current(tenant: string): Promise<TenantModel> };
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** A learner without a counted answer does not exist. */
export const userNotFound = (): ApiError =>
  new ApiError('USER_NOT_FOUND', 'No answer of this user_id was counted');

/**
 * JSON of the data of GET /api/v1/mastery/{user_id}: all skills, where neither a limit nor a cursor is given.
 * @throws ApiError INVALID_REQUEST, USER_NOT_FOUND, UNAVAILABLE
 */
export async function readMastery(
  ports: MasteryPorts,
  tenant: string,
  userId: string,
  { limit, cursor }: PageQuery,
): Promise<string> {
  const after = idAfter(cursor);
  const { skills, model } = await readLearner(ports, tenant, userId);
  const now = ports.now();
  const atMost = limit ?? (cursor === undefined ? skills.size : pageLimit);
  const { ids, nextCursor } = pageOfIds(sortedAfter(skills.keys(), after), atMost);
  const describe = (skillId: string): object =>
    describeSkill({
      skillId,
      skill: skills.get(skillId) as SkillState,
      model: skillModelOf(model, skillId),
      section: placementOf(model.catalogue, skillId).section,
      now,
    });
  return tellList({ user_id: userId }, { name: 'skills', items: ids, describe }, { next_cursor: nextCursor });
}

/** Data of GET /api/v1/mastery/{user_id}/{skill_id}. @throws ApiError USER_NOT_FOUND, SKILL_NOT_FOUND, UNAVAILABLE */
export async function readSkillMastery(
  ports: MasteryPorts,
  tenant: string,
  userId: string,
  skillId: string,
): Promise<object> {
  return { user_id: userId, ...describeSkill(await readTracedSkill(ports, tenant, userId, skillId)) };
}

/** One skill of one learner, with the model that is in force for it. */
export interface TracedSkill {
  readonly skillId: string;
  readonly skill: SkillState;
  readonly model: SkillModel;
  /** By the catalogue; null: none. */
  readonly section: Section | null;
  /** When it is looked at, Unix milliseconds. */
  readonly now: number;
}

/** @throws ApiError USER_NOT_FOUND, SKILL_NOT_FOUND, UNAVAILABLE */
export async function readTracedSkill(
  ports: MasteryPorts,
  tenant: string,
  userId: string,
  skillId: string,
): Promise<TracedSkill & { readonly learner: LearnerState; readonly tenantModel: TenantModel }> {
  const { learner, skills, model } = await readLearner(ports, tenant, userId);
  const skill = skillOf(skills, skillId);
  const now = ports.now();
  return {
    skillId,
    skill,
    model: skillModelOf(model, skillId),
    section: placementOf(model.catalogue, skillId).section,
    now,
    learner,
    tenantModel: model,
  };
}

/** One of a learner's skills. @throws ApiError SKILL_NOT_FOUND */
export function skillOf(skills: ReadonlyMap<string, SkillState>, skillId: string): SkillState {
  const skill = skills.get(skillId);
  if (skill !== undefined) return skill;
  throw new ApiError('SKILL_NOT_FOUND', 'No answer of this user_id on this skill_id was counted');
}

/** A learner's states, and the model that is in force. @throws ApiError USER_NOT_FOUND, UNAVAILABLE */
export async function readLearner({ learners, models }: MasteryPorts, tenant: string, userId: string) {
  const [found, model] = await Promise.all([learners.read(tenant, userId), models.current(tenant)]);
  if (found === null) throw userNotFound();
  return { ...found, model };
}

/** A learner's own state. @throws ApiError USER_NOT_FOUND, UNAVAILABLE */
export async function findLearner(
  { learners }: Pick<MasteryPorts, 'learners'>,
  tenant: string,
  userId: string,
): Promise<LearnerState> {
  const learner = await learners.own(tenant, userId);
  if (learner === null) throw userNotFound();
  return learner;
}

/** Mastery now, after forgetting, unrounded. */
export const masteryNow = ({ skill, model, now }: TracedSkill): number =>
  effectiveMastery(model.parameters.pInit, skill, now);

/** A skill's entry in the answers. Answers per minute have 4 decimals, for slow work has few. */
export function describeSkill(traced: TracedSkill): object {
  const { skillId, skill, section } = traced;
  const mastery = masteryNow(traced);
  return {
    skill_id: skillId,
    section,
    mastery: round4(mastery),
    mastery_at_last_attempt: round4(skill.mastery),
    mastered: isMastered(skill, mastery),
    total_attempts: skill.attempts,
    correct_attempts: skill.correct,
    plateau_detected: isPlateau(skill.plateau),
    efficiency_index: orNull(efficiencyIndex(skill.pace), round1),
    correct_per_minute: orNull(correctPerMinute(skill.pace), round4),
    confidence_bias: orNull(calibration(skill.calibration)?.bias ?? null, round4),
    last_attempt_at: new Date(skill.lastAttemptAt).toISOString(),
  };
}

const orNull = (value: number | null, shown: (x: number) => number): number | null =>
  value === null ? null : shown(value);
