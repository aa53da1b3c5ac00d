import { accuracyConstants as constants } from '../../base/accuracy-constants.js';
import {
  type AnswerLog,
  iterateLearnerRanges,
  type LearnerRange,
  type LearnerSelection,
  selectAllLearners,
} from '../../base/answer-log.js';
import { dayMs } from '../../base/common.js';
import type { AccuracySubject, HorizonUnit } from '../../prediction/accuracy-model.js';
import { findColumn, rowWidth } from '../../prediction/features.js';
import { computeRecentShare } from '../../tracing/trend.js';
import type { FeatureStore } from '../prediction/replay-log.js';

export interface AccuracyCase {
  readonly learner: number;
  readonly history: number;
  readonly horizon: number;
  /** Part of the horizon before the end of the log. */
  readonly span: number;
  /** Time of the previous answer, Unix milliseconds. */
  readonly at: number;
  readonly answers: number;
  readonly right: number;
}

export type TracedCase = AccuracyCase & AccuracySubject;
export type Observation = AccuracyCase & { readonly expected: number };

export const detectHorizonUnit = (log: AnswerLog): HorizonUnit =>
  [...iterateLearnerRanges(log, selectAllLearners(log))].some((range) => isTimed(log, range))
    ? 'days'
    : 'answers';

const isTimed = ({ at }: AnswerLog, { start, end }: LearnerRange): boolean =>
  end > start && (at[end - 1] as number) > (at[start] as number);

export const minPastMs = constants.horizons.days[0] * dayMs;

const { from: firstDoublingCut, perDoubling } = constants.cuts;
const doublings = 26;
const laterCuts: ReadonlySet<number> = new Set(
  Array.from({ length: doublings * perDoubling }, (_, i) =>
    Math.round(firstDoublingCut * 2 ** (i / perDoubling)),
  ),
);

const isCut = (history: number): boolean => history < firstDoublingCut || laterCuts.has(history);

/** @param before Unix milliseconds; later answers are ignored (horizons in days) */
export function collectAccuracyCases(
  log: AnswerLog,
  unit: HorizonUnit,
  learners = selectAllLearners(log),
  before = Number.POSITIVE_INFINITY,
): AccuracyCase[] {
  const { at, correct } = log;
  const inDays = unit === 'days';
  const logEnd = at.reduce((latest, time) => (time < before && time > latest ? time : latest), 0);
  const cases: AccuracyCase[] = [];
  for (const range of iterateLearnerRanges(log, learners)) {
    const { learner, start } = range;
    if (inDays && !isTimed(log, range)) continue;
    // Late answers: times may not ascend.
    const later = inDays ? at.subarray(start, range.end).findIndex((time) => time > logEnd) : -1;
    const end = later < 0 ? range.end : start + later;
    for (let first = start + 1; first < end; first++) {
      const history = first - start;
      if (!isCut(history)) continue;
      let [index, right] = [first, 0];
      for (const horizon of constants.horizons[unit]) {
        const from = at[first - 1] as number;
        const until = from + horizon * dayMs;
        while (index < end && (inDays ? (at[index] as number) <= until : index < first + horizon))
          right += correct[index++] as number;
        const answers = index - first;
        const span = inDays ? Math.min(horizon, (logEnd - from) / dayMs) : horizon;
        if ((inDays || answers === horizon) && answers >= constants.minAnswers)
          cases.push({ learner, history, horizon, span, at: from, answers, right });
      }
    }
  }
  return cases;
}

/** Adds the figures that the service had when it predicted the next answer. */
export function collectTracedCases(
  log: AnswerLog,
  unit: HorizonUnit,
  learners: LearnerSelection,
  store: FeatureStore,
  before?: number,
): TracedCase[] {
  const subjects = new Map<number, AccuracySubject>();
  const [ability, recent, slow] = [
    findColumn('ability'),
    findColumn('recentAnswers'),
    findColumn('slowAnswers'),
  ];
  const subjectAt = (index: number, history: number): AccuracySubject => {
    const row = store.rows.subarray(index * rowWidth, (index + 1) * rowWidth);
    const answers = log.correct.subarray(index - history, index);
    const right = answers.reduce((sum, value) => sum + value, 0);
    const averages = { ability: row[ability] ?? 0, recent: row[recent] ?? 0, slow: row[slow] ?? 0 };
    return {
      trace: { ...averages, right, wrong: history - right },
      trend: computeRecentShare(answers, log.at.subarray(index - history, index)),
    };
  };
  return collectAccuracyCases(log, unit, sampleLearners(learners), before).map((one) => {
    const index = (log.starts[one.learner] as number) + one.history;
    const subject = subjects.get(index) ?? subjectAt(index, one.history);
    subjects.set(index, subject);
    return { ...one, ...subject };
  });
}

function sampleLearners(learners: LearnerSelection): LearnerSelection {
  const all = learners.reduce((count, takesPart) => count + takesPart, 0);
  const every = Math.ceil(all / constants.fit.maxLearners);
  let met = 0;
  return learners.map((takesPart) => (takesPart === 1 && met++ % every === 0 ? 1 : 0));
}
