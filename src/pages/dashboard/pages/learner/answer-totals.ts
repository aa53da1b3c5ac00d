import type { Mastery } from '../../../../client/types.js';

export type AnswerTotals = ReturnType<typeof summarizeAnswers>;

/** Uses the field names of POST /mastery. */
export const summarizeAnswers = ({ total_attempts, correct_attempts, skills }: Mastery) => ({
  total_attempts,
  correct_attempts,
  last_attempt_at:
    skills
      .map(({ last_attempt_at }) => last_attempt_at)
      .sort()
      .at(-1) ?? null,
  plateaus: skills.filter(({ plateau_detected }) => plateau_detected).map(({ skill_id }) => skill_id),
});
