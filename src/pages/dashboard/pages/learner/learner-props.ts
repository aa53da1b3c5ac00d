import type { Mastery } from '../../../../client/types.js';
import type { Route } from '../../base/route.js';
import type { SkillNameLookup } from '../../base/skill-names.js';

export type LearnerSkill = Mastery['skills'][number];

export interface NamedSkills {
  readonly skills: readonly LearnerSkill[];
  readonly getSkillName: SkillNameLookup;
}

export interface LearnerProps extends NamedSkills {
  readonly userId: string;
  readonly totals: AnswerTotals;
  readonly query: Route['query'];
}

type AnswerTotals = ReturnType<typeof summarizeAnswers>;

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
