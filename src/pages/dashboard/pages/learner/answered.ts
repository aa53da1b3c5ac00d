import type { Mastery } from '../../../../client/types.js';

type LearnerSkill = Mastery['skills'][number];

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** All skills of a learner together, as POST /mastery has them. */
export const answeredOf = (skills: readonly LearnerSkill[]) => ({
  total_attempts: sum(skills.map(({ total_attempts }) => total_attempts)),
  correct_attempts: sum(skills.map(({ correct_attempts }) => correct_attempts)),
  last_attempt_at:
    skills
      .map(({ last_attempt_at }) => last_attempt_at)
      .sort()
      .at(-1) ?? null,
  plateaus: skills.filter(({ plateau_detected }) => plateau_detected).map(({ skill_id }) => skill_id),
});
