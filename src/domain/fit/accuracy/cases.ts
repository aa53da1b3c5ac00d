/** Moments in learners' histories, and what came after: what forecasts are fitted on and measured by. */

import type { AnswerLog, LearnerFilter } from '../../base/answer-log.js';
import { dayMs } from '../../base/days.js';
import { accuracyConstants as constants } from '../../base/params.js';
import type { HorizonUnit } from '../../prediction/accuracy-model.js';

/** A learner after so many answers, and the answers inside the horizon from then on. */
export interface AccuracyCase {
  /** Index in the log. */
  readonly learner: number;
  /** Answers so far: the first answer of the horizon is this place of the learner's, from 0. */
  readonly history: number;
  readonly horizon: number;
  /** Answers inside the horizon, and the right ones of them. */
  readonly answers: number;
  readonly right: number;
}

/** Days where any learner's answers differ in time, else answers. */
export function unitOf(log: AnswerLog): HorizonUnit {
  for (let learner = 0; learner + 1 < log.starts.length; learner++) {
    if (isTimed(log, learner)) return 'days';
  }
  return 'answers';
}

function isTimed({ starts, at }: AnswerLog, learner: number): boolean {
  const [start, end] = [starts[learner] as number, starts[learner + 1] as number];
  return end > start && (at[end - 1] as number) > (at[start] as number);
}

/** Whether a learner with so many answers is looked at. */
const isCut = (history: number): boolean => history < lowestCuts || laterCuts.has(history);

const { from: lowestCuts, perDoubling } = constants.cuts;
const doublings = 26;
const laterCuts: ReadonlySet<number> = new Set(
  Array.from({ length: doublings * perDoubling }, (_, i) => Math.round(lowestCuts * 2 ** (i / perDoubling))),
);

/**
 * All cases of some learners, in the order of the log. In days the horizon begins with the last answer before the cut
 * and may reach beyond the end of the log; in answers it is complete.
 */
export function accuracyCases(log: AnswerLog, unit: HorizonUnit, takes: LearnerFilter): AccuracyCase[] {
  const cases: AccuracyCase[] = [];
  for (let learner = 0; learner + 1 < log.starts.length; learner++) {
    if (!takes(learner) || (unit === 'days' && !isTimed(log, learner))) continue;
    const length = (log.starts[learner + 1] as number) - (log.starts[learner] as number);
    for (let history = 1; history < length; history++) {
      if (isCut(history)) addCases(cases, log, unit, learner, history);
    }
  }
  return cases;
}

function addCases(
  cases: AccuracyCase[],
  { starts, at, correct }: AnswerLog,
  unit: HorizonUnit,
  learner: number,
  history: number,
): void {
  const first = (starts[learner] as number) + history;
  const end = starts[learner + 1] as number;
  const now = at[first - 1] as number;
  let place = first;
  let right = 0;
  for (const horizon of constants.horizons[unit]) {
    const isInside = (): boolean =>
      unit === 'days' ? (at[place] as number) <= now + horizon * dayMs : place < first + horizon;
    while (place < end && isInside()) right += correct[place++] as number;
    const answers = place - first;
    const isComplete = unit === 'days' || answers === horizon;
    if (isComplete && answers >= constants.minAnswers)
      cases.push({ learner, history, horizon, answers, right });
  }
}
