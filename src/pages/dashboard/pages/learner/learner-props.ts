import type { Mastery } from '../../../../client/types.js';
import type { Route } from '../../base/route.js';
import type { SkillNameLookup } from '../../base/skill-names.js';
import type { AnswerTotals } from './answer-totals.js';

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
