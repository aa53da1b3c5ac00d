/** The total score that a learner's progress is measured from (science notes 6.6). */

import type { TenantModel } from '../catalogue/tenant-model.js';
import { viewSkills } from '../learner/skill-view.js';
import { lacksBaseline } from '../score/goal.js';
import { currentTotal } from '../score/score.js';
import type { Replay } from './replay.js';

/** What a total depends on beside the learner. */
export interface TotalContext {
  readonly model: TenantModel;
  /** Number of different skills that the tenant set, or that learners enough answered. */
  readonly knownSkills: number;
}

/**
 * Takes the baseline of a replayed learner where it is due.
 *
 * @param at time of the last answer, Unix milliseconds
 * @returns null where it is not due
 */
export function takeBaseline(
  { learner, skills, setBaseline }: Replay,
  at: number,
  { model, knownSkills }: TotalContext,
): number | null {
  if (!lacksBaseline(learner())) return null;
  const views = viewSkills(skills, model, at);
  const { catalogue } = model;
  const total = currentTotal({ learner: learner(), views, catalogue, knownSkills, now: at });
  setBaseline(total);
  return total;
}
