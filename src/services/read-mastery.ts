import { isMastered } from '../domain/mastery.js';
import { round4 } from '../domain/probability.js';
import type { SkillState } from '../domain/types.js';
import { ApiError } from '../errors.js';
import type { LearnerReader } from './ports.js';

/** A learner without a counted answer does not exist. */
export const userNotFound = (): ApiError =>
  new ApiError('USER_NOT_FOUND', 'No answer of this user_id was counted');

/** Data of GET /api/v1/mastery/{user_id}. @throws ApiError USER_NOT_FOUND */
export async function readMastery(reader: LearnerReader, tenant: string, userId: string): Promise<object> {
  const found = await reader.read(tenant, userId);
  if (found === null) throw userNotFound();
  const skills = [...found.skills].sort(([a], [b]) => byUtf8(a, b));
  return { user_id: userId, skills: skills.map(([skillId, skill]) => describe(skillId, skill)) };
}

function describe(skillId: string, skill: SkillState): object {
  const mastery = round4(skill.mastery);
  return {
    skill_id: skillId,
    section: null,
    mastery,
    mastery_at_last_attempt: mastery,
    mastered: isMastered(skill, skill.mastery),
    total_attempts: skill.attempts,
    correct_attempts: skill.correct,
    plateau_detected: false,
    efficiency_index: null,
    correct_per_minute: null,
    confidence_bias: null,
    last_attempt_at: new Date(skill.lastAttemptAt).toISOString(),
  };
}

/** Ids are ordered by their UTF-8 bytes, as they are compared. */
const byUtf8 = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
