import { computeSum } from '../../../../lists.js';
import type { LearnerSkill } from './learner-props.js';

/** Uses the field names of POST /mastery. */
export const sumAnswers = (skills: readonly LearnerSkill[]) => ({
  total_attempts: computeSum(skills.map(({ total_attempts }) => total_attempts)),
  correct_attempts: computeSum(skills.map(({ correct_attempts }) => correct_attempts)),
  last_attempt_at:
    skills
      .map(({ last_attempt_at }) => last_attempt_at)
      .sort()
      .at(-1) ?? null,
  plateaus: skills.filter(({ plateau_detected }) => plateau_detected).map(({ skill_id }) => skill_id),
});
