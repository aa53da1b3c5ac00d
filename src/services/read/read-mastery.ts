import { round1, round4 } from '../../domain/base/common.js';
import { placementOf } from '../../domain/catalogue/catalogue.js';
import { skillModelOf, type TenantModel } from '../../domain/catalogue/tenant-model.js';
import { effectiveMastery } from '../../domain/tracing/bkt.js';
import { calibration } from '../../domain/tracing/calibration.js';
import { correctPerMinute, efficiencyIndex } from '../../domain/tracing/pace.js';
import { isPlateau } from '../../domain/tracing/plateau.js';
import { isMastered, type LearnerState, type SkillState } from '../../domain/tracing/states.js';
import { ApiError } from '../../errors.js';
import type { Logger } from '../../telemetry.js';
import { idAfter, listJson, type PageQuery, pageLimit, pageOfIds, sortedAfter } from './pages.js';

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
  readonly now: () => number;
}

/** For reads that add history from ClickHouse and do without it where it does not answer. */
export interface HistoryPorts<History> extends MasteryPorts {
  readonly history: History;
  /** Seconds that the oldest answer has waited for ClickHouse; null where that is not known. */
  readonly sourceLagSeconds: () => Promise<number | null>;
  readonly logger: Logger;
}

/** What `read` finds, null where ClickHouse is unavailable or busy; and the lag before, when a missing answer was waiting. */
export async function readHistory<History, Found>(
  { history, sourceLagSeconds, logger }: HistoryPorts<History>,
  read: (history: History) => Promise<Found | null>,
): Promise<{ readonly lag: number | null; readonly found: Found | null }> {
  const lag = await sourceLagSeconds();
  try {
    return { lag, found: await read(history) };
  } catch (error) {
    logger.warn({ err: error }, "a learner's history cannot be read from ClickHouse");
    return { lag, found: null };
  }
}

/** A learner without a counted answer does not exist. */
export const userNotFound = (): ApiError =>
  new ApiError('USER_NOT_FOUND', 'No answer of this user_id was counted');

/** For calls that a goal is enough for. */
export const nothingKnown = (): ApiError =>
  new ApiError('USER_NOT_FOUND', 'This user_id has no counted answers and no goal');

/** A learner's states, and the model in force. @throws ApiError USER_NOT_FOUND, UNAVAILABLE */
export async function readLearner({ learners, models }: MasteryPorts, tenant: string, userId: string) {
  const [found, model] = await Promise.all([learners.read(tenant, userId), models.current(tenant)]);
  if (found === null) throw userNotFound();
  return { ...found, model };
}

type FoundLearner = Awaited<ReturnType<typeof readLearner>>;

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

export function skillOf(skills: ReadonlyMap<string, SkillState>, skillId: string): SkillState {
  const skill = skills.get(skillId);
  if (skill !== undefined) return skill;
  throw new ApiError('SKILL_NOT_FOUND', 'No answer of this user_id on this skill_id was counted');
}

/** One skill of one learner, with the model in force for it, at a time in Unix milliseconds. */
export type TracedSkill = ReturnType<typeof traced>;

const traced = ({ skills, model }: FoundLearner, skillId: string, now: number) => ({
  skillId,
  skill: skillOf(skills, skillId),
  model: skillModelOf(model, skillId),
  section: placementOf(model.catalogue, skillId).section,
  now,
});

/** @throws ApiError USER_NOT_FOUND, SKILL_NOT_FOUND, UNAVAILABLE */
export async function readTracedSkill(ports: MasteryPorts, tenant: string, userId: string, skillId: string) {
  const found = await readLearner(ports, tenant, userId);
  return { ...traced(found, skillId, ports.now()), learner: found.learner, tenantModel: found.model };
}

/**
 * JSON of GET /api/v1/mastery/{user_id}: all skills, where neither a limit nor a cursor is given.
 * @throws ApiError INVALID_REQUEST, USER_NOT_FOUND, UNAVAILABLE
 */
export async function readMastery(
  ports: MasteryPorts,
  tenant: string,
  userId: string,
  { limit, cursor }: PageQuery,
): Promise<string> {
  const after = idAfter(cursor);
  const found = await readLearner(ports, tenant, userId);
  const now = ports.now();
  const max = limit ?? (cursor === undefined ? found.skills.size : pageLimit);
  const { ids, nextCursor } = pageOfIds(sortedAfter(found.skills.keys(), after), max);
  const describe = (skillId: string): object => describeSkill(traced(found, skillId, now));
  return listJson({ user_id: userId }, { name: 'skills', items: ids, describe }, { next_cursor: nextCursor });
}

/** Data of GET /api/v1/mastery/{user_id}/{skill_id}. @throws ApiError USER_NOT_FOUND, SKILL_NOT_FOUND, UNAVAILABLE */
export const readSkillMastery = async (
  ports: MasteryPorts,
  tenant: string,
  userId: string,
  skillId: string,
): Promise<object> => ({
  user_id: userId,
  ...describeSkill(await readTracedSkill(ports, tenant, userId, skillId)),
});

/** Mastery now, after forgetting, unrounded. */
export const masteryNow = ({ skill, model, now }: TracedSkill): number =>
  effectiveMastery(model.parameters.pInit, skill, now);

/** A skill's entry in the answers. Answers per minute have 4 decimals, for slow work has few. */
export function describeSkill(subject: TracedSkill): object {
  const { skillId, skill, section } = subject;
  const mastery = masteryNow(subject);
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
