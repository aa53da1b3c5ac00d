/** What an answer changes of a skill, for those who are to be notified of it. */
import { isPlateau } from '../tracing/plateau.js';
import type { SkillState } from '../tracing/states.js';

type SkillChange = 'mastery.reached' | 'plateau.detected' | 'plateau.ended';

/** At most one of mastery and one of the plateau. */
export function changesOf(before: SkillState, after: SkillState): SkillChange[] {
  const changes: SkillChange[] = [];
  if (after.reached && !before.reached) changes.push('mastery.reached');
  const isFlat = isPlateau(after.plateau);
  if (isFlat !== isPlateau(before.plateau)) changes.push(isFlat ? 'plateau.detected' : 'plateau.ended');
  return changes;
}
