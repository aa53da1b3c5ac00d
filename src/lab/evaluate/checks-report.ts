import { chartFigure } from '../report/chart.js';
import { formatNumber, formatTable } from '../report/format.js';
import { type ChartPoint, diagonalMark, type Series, shareAxis } from '../report/marks.js';
import { type Cell, htmlTable, minObservations, type Row, section } from '../report/page.js';
import { formatFigure } from './figures.js';
import type { MonotoneCheck } from './probe.js';
import type { ModelResult } from './results.js';
import type { AnswerChecks, Interval } from './validity.js';

const formatPercent = (share: number | null): string =>
  share === null ? 'none' : `${(100 * share).toFixed(1)} %`;

const addInterval = (text: string, interval: Interval, format: (bound: number) => string): string =>
  interval === null
    ? `${text} (too few learners)`
    : `${text} [${format(interval[0])}\u00a0${format(interval[1])}]`;

const formatShare = (share: number | null, interval: Interval): string =>
  addInterval(formatPercent(share), interval, (bound) => (100 * bound).toFixed(1));

const formatCount = (count: number, all: number, interval: Interval): string =>
  `${formatNumber(count)} of ${formatNumber(all)} (${formatShare(all === 0 ? null : count / all, interval)})`;

const formatBias = (bias: number | null, interval: Interval): string =>
  addInterval(formatFigure(bias, 3), interval, (bound) => formatFigure(bound, 3));

function buildRows({ validity, movers }: AnswerChecks): (readonly [label: string, figure: string])[] {
  const { masteredThenLow: low, masteredThenHigh: high, intervals: of } = validity;
  const after = formatShare(
    validity.masteredThenAccuracy,
    low === null || high === null ? null : [low, high],
  );
  const until = formatShare(validity.unmasteredThenAccuracy, of.unmasteredThenAccuracy);
  const masteredAt60 = formatCount(validity.masteredAt60, validity.pairs, of.masteredAt60);
  const jumps = formatCount(validity.jumps, validity.settledAnswers, of.jumps);
  const bias = (count: number, kind: string): string =>
    `Mean prediction minus share correct, ${formatNumber(count)} ${kind} learners`;
  const { rising, falling, longLearners, intervals } = movers;
  const long = `${formatNumber(longLearners)} learners with 150 or more answers`;
  return [
    ['Mastery contradicts the last 10 answers', describeContradictions(validity)],
    ['Mastered, with at most 6 of the last 10 answers correct', masteredAt60],
    ['Mastery changes of more than .5, from answer 6 of a pair on', jumps],
    ['Share correct in the 5 answers after mastery reached .95', after],
    ['Correct answers until mastery reached .95, from answer 6 on', until],
    [bias(rising, 'improving'), formatBias(movers.biasRising, intervals.biasRising)],
    [bias(falling, 'declining'), formatBias(movers.biasFalling, intervals.biasFalling)],
    [`Root mean square of this difference, ${long}`, formatBias(movers.longRms, intervals.longRms)],
  ];
}

export const describeContradictions = ({
  contradictions,
  pairs,
  intervals,
}: AnswerChecks['validity']): string => formatCount(contradictions, pairs, intervals.contradictions);

export const formatValidity = (found: AnswerChecks): string =>
  `Mastery compared with answers; brackets are 95 % confidence intervals over learners:\n${formatTable(buildRows(found))}`;

export function validitySection(found: AnswerChecks): string {
  const text =
    'The first two rows cover pairs of learner and skill with 10 or more answers, after the last answer. Mastery contradicts the answers in two cases: it is .7 or more although at most 4 of the last 10 and 2 of the last 4 answers are correct, or it is below .6 although 9 or 10 of the last 10 are correct. A learner improves or declines if the share of correct answers in the last 50 answers differs from that in the first 50 by .2 or more. The differences compare the predictions of the last 50 answers with these answers. Brackets are 95 % confidence intervals over learners.';
  return section('Mastery compared with answers', text, htmlTable(['Check', 'Result'], buildRows(found)));
}

export const formatMonotone = (found: MonotoneCheck): string =>
  `Monotonicity: ${formatNumber(found.probes)} probes of other items of the answered skill, ${formatNumber(found.metItems)} of them of items that the learner had answered.\nA correct answer lowered the served probability ${formatNumber(found.rightLowers)} times; an incorrect answer raised it ${formatNumber(found.wrongRaises)} times.${found.furthest > 0 ? ` Largest wrong change: ${found.furthest.toExponential(1)}.` : ''}`;

export function monotoneSection(found: MonotoneCheck): string {
  const text =
    'This check counts correct answers that lower the served probability of another item of the skill, and incorrect answers that raise it. Both counts should be 0. Each probe applies both outcomes to the state of a test learner and compares the probability of another item before and after. Probed items: no item, items that the learner had answered, and other items of the log.';
  const violations = (count: number): Cell => ({
    text: formatNumber(count),
    look: count > 0 ? 'off' : undefined,
  });
  const rows: Row[] = [
    ['Probes', formatNumber(found.probes)],
    ['Probes of items that the learner had answered', formatNumber(found.metItems)],
    ['Correct answer lowered the probability', violations(found.rightLowers)],
    ['Incorrect answer raised the probability', violations(found.wrongRaises)],
    ['Largest change against the answer', found.furthest === 0 ? 'none' : found.furthest.toExponential(1)],
  ];
  return section('Monotonicity of the served probability', text, htmlTable(['Check', 'Result'], rows));
}

export const masteryChart = ({ byMastery }: AnswerChecks['validity']): string =>
  binChart('Correct answers by mastery', 'mastery before the answer', { 'Served mastery': 'a' }, byMastery);

/** @param seriesColors one series */
export function binChart(
  title: string,
  x: string,
  seriesColors: Series,
  bins: ModelResult['reliability'],
): string {
  const [series = ''] = Object.keys(seriesColors);
  return chartFigure({
    ...{ title, x: shareAxis(x), y: shareAxis('share of correct answers'), series: seriesColors },
    r: { range: [1.5, 7] },
    marks: [diagonalMark],
    points: bins.flatMap(({ answers, predicted, correct }): ChartPoint[] => {
      if (predicted === null || correct === null) return [];
      const note = `mean ${formatFigure(predicted, 3)}, correct ${formatFigure(correct, 3)}, ${formatNumber(answers)} answers`;
      const isFew = answers < minObservations;
      return [{ series, x: predicted, y: correct, note, weight: answers, isFew }];
    }),
    counts: bins.map(({ low, high, answers }) => ({
      ...{ from: low, to: high, value: answers },
      note: `${formatFigure(low, 3)} to ${formatFigure(high, 3)}: ${formatNumber(answers)} answers`,
    })),
  });
}
