import { accuracyConstants as constants } from '../../base/accuracy-constants.js';
import {
  type AnswerLog,
  everyone,
  type LearnerPlaces,
  type Learners,
  placesByLearner,
} from '../../base/answer-log.js';
import { dayMs } from '../../base/common.js';
import type { AccuracySubject, HorizonUnit } from '../../prediction/accuracy-model.js';
import { columnOf, rowWidth } from '../../prediction/features.js';
import { shareAfter } from '../../tracing/trend.js';
import type { FeatureStore } from '../prediction/replay.js';

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

export const unitOf = (log: AnswerLog): HorizonUnit =>
  [...placesByLearner(log, everyone(log))].some((own) => isTimed(log, own)) ? 'days' : 'answers';

const isTimed = ({ at }: AnswerLog, { start, end }: LearnerPlaces): boolean =>
  end > start && (at[end - 1] as number) > (at[start] as number);

export const leastPast = constants.horizons.days[0] * dayMs;

const { from: lowestCuts, perDoubling } = constants.cuts;
const doublings = 26;
const laterCuts: ReadonlySet<number> = new Set(
  Array.from({ length: doublings * perDoubling }, (_, i) => Math.round(lowestCuts * 2 ** (i / perDoubling))),
);

const isCut = (history: number): boolean => history < lowestCuts || laterCuts.has(history);

/** @param before Unix milliseconds; later answers are ignored (horizons in days) */
export function accuracyCases(
  log: AnswerLog,
  unit: HorizonUnit,
  learners = everyone(log),
  before = Number.POSITIVE_INFINITY,
): AccuracyCase[] {
  const { at, correct } = log;
  const inDays = unit === 'days';
  const over = at.reduce((latest, time) => (time < before && time > latest ? time : latest), 0);
  const cases: AccuracyCase[] = [];
  for (const own of placesByLearner(log, learners)) {
    const { learner, start } = own;
    if (inDays && !isTimed(log, own)) continue;
    let { end } = own;
    while (inDays && end > start && (at[end - 1] as number) > over) end--;
    for (let first = start + 1; first < end; first++) {
      const history = first - start;
      if (!isCut(history)) continue;
      let [place, right] = [first, 0];
      for (const horizon of constants.horizons[unit]) {
        const from = at[first - 1] as number;
        const until = from + horizon * dayMs;
        while (place < end && (inDays ? (at[place] as number) <= until : place < first + horizon))
          right += correct[place++] as number;
        const answers = place - first;
        const span = inDays ? Math.min(horizon, (over - from) / dayMs) : horizon;
        if ((inDays || answers === horizon) && answers >= constants.minAnswers)
          cases.push({ learner, history, horizon, span, at: from, answers, right });
      }
    }
  }
  return cases;
}

export function tracedCases(
  log: AnswerLog,
  unit: HorizonUnit,
  learners: Learners,
  store: FeatureStore,
  before?: number,
): TracedCase[] {
  const subjects = new Map<number, AccuracySubject>();
  const [ability, recent, slow] = [columnOf('ability'), columnOf('recentAnswers'), columnOf('slowAnswers')];
  const subjectAt = (place: number, history: number): AccuracySubject => {
    const row = store.rows.subarray(place * rowWidth, (place + 1) * rowWidth);
    const answers = log.correct.subarray(place - history, place);
    const right = answers.reduce((sum, value) => sum + value, 0);
    const averages = { ability: row[ability] ?? 0, recent: row[recent] ?? 0, slow: row[slow] ?? 0 };
    return {
      trace: { ...averages, right, wrong: history - right },
      trend: { share: shareAfter(answers), answers: history },
    };
  };
  return accuracyCases(log, unit, evenly(learners), before).map((one) => {
    const place = (log.starts[one.learner] as number) + one.history;
    const subject = subjects.get(place) ?? subjectAt(place, one.history);
    subjects.set(place, subject);
    return { ...one, ...subject };
  });
}

function evenly(learners: Learners): Learners {
  const all = learners.reduce((count, takesPart) => count + takesPart, 0);
  const every = Math.ceil(all / constants.fit.maxLearners);
  let met = 0;
  return learners.map((takesPart) => (takesPart === 1 && met++ % every === 0 ? 1 : 0));
}
