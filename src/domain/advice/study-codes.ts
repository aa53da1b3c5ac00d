/** What the state of a skill calls for. */

import { studyModel } from '../base/params.js';
import type { PerSection } from '../base/types.js';
import type { SkillView } from '../learner/skill-view.js';
import type { SectionMeasure } from '../score/section-measure.js';
import { calibration } from '../tracing/calibration.js';
import { efficiencyIndex } from '../tracing/pace.js';
import { isPlateau } from '../tracing/plateau.js';
import { rapidFlag } from '../tracing/rapid.js';
import type { SkillState } from '../tracing/states.js';
import { isMastered } from '../tracing/states.js';
import { hasFaded } from './advice-rules.js';
import { practiceGain, reviewGain } from './gain.js';

/** Codes of one skill's state, the most urgent first: only the first that holds is told. */
export type StateCode =
  | 'PLATEAU'
  | 'OVERCONFIDENT'
  | 'RAPID'
  | 'REVIEW_DUE'
  | 'SLOW'
  | 'WEAK_SKILL'
  | 'UNDERCONFIDENT'
  | 'READY';

/** A skill of the learner, with what its state calls for, and the points per hour of doing so. */
export interface Judged {
  readonly view: SkillView;
  readonly code: StateCode | null;
  readonly gain: number;
}

export function judge(view: SkillView, measures: PerSection<SectionMeasure>): Judged {
  const code = codeOf(view.state, view.mastery);
  const gain = code === 'REVIEW_DUE' ? reviewGain(view, measures) : practiceGain(view, measures);
  return { view, code, gain };
}

/** @param mastery the effective one now */
function codeOf(state: SkillState, mastery: number): StateCode | null {
  if (isPlateau(state.plateau)) return 'PLATEAU';
  const flag = calibration(state.calibration)?.flag ?? null;
  if (flag === 'over') return 'OVERCONFIDENT';
  if (rapidFlag(state.rapid)) return 'RAPID';
  if (hasFaded(state.mastery, mastery)) return 'REVIEW_DUE';
  if (isSlow(state, mastery)) return 'SLOW';
  if (isWeak(state, mastery)) return 'WEAK_SKILL';
  if (flag === 'under') return 'UNDERCONFIDENT';
  return isMastered(state, mastery) ? 'READY' : null;
}

/** Accurate, but slower than is usual for the skill. */
function isSlow({ pace }: SkillState, mastery: number): boolean {
  const { slow } = studyModel;
  if (pace.timed < slow.timed || mastery < slow.mastery) return false;
  const index = efficiencyIndex(pace);
  return index !== null && index <= slow.index;
}

const isWeak = ({ attempts }: SkillState, mastery: number): boolean =>
  mastery < studyModel.weak.mastery && attempts >= studyModel.weak.attempts;
