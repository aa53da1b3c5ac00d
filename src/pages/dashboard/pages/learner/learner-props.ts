import type { Mastery } from '../../../../client/types.js';
import type { Route } from '../../base/route.js';
import type { NameOf } from '../../base/skill-names.js';

export type LearnerSkill = Mastery['skills'][number];

/** Properties of each part of a learner's page. */
export interface LearnerProps {
  readonly userId: string;
  readonly query: Route['query'];
  readonly skills: readonly LearnerSkill[];
  readonly nameOf: NameOf;
}
