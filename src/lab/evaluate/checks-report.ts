import { chartFigure } from '../report/chart.js';
import { formatNumber, formatTable } from '../report/format.js';
import { type ChartPoint, diagonalMark, type Series, shareAxis } from '../report/marks.js';
import { type Cell, htmlTable, minObservations, type Row, section } from '../report/page.js';
import type { MonotoneCheck } from './probe.js';
import type { ModelResult } from './results.js';
import type { AnswerChecks } from './validity.js';

const formatPercent = (share: number | null): string =>
  share === null ? 'none' : `${(100 * share).toFixed(1)} %`;

const formatShare = (count: number, all: number): string =>
  `${formatNumber(count)} of ${formatNumber(all)} (${formatPercent(all === 0 ? null : count / all)})`;

const formatDecimal = (figure: number | null): string => figure?.toFixed(3) ?? 'none';

function buildRows({ validity, movers }: AnswerChecks): (readonly [label: string, figure: string])[] {
  const { masteredThenAccuracy: next, masteredThenLow: low, masteredThenHigh: high } = validity;
  return [
    ['Mastery contradicts the last ten answers', formatShare(validity.contradictions, validity.pairs)],
    ['Mastered with at most six of the last ten right', formatShare(validity.masteredAt60, validity.pairs)],
    ['From the sixth answer on, moves by more than .5', formatShare(validity.jumps, validity.settledAnswers)],
    [
      'Right of the next five after mastery of .95',
      `${formatPercent(next)} (${formatPercent(low)} to ${formatPercent(high)})`,
    ],
    ['Right before it, from the sixth answer on', formatPercent(validity.unmasteredThenAccuracy)],
    [
      `Predicted less right, ${formatNumber(movers.rising)} rising learners`,
      formatDecimal(movers.biasRising),
    ],
    [
      `Predicted less right, ${formatNumber(movers.falling)} falling learners`,
      formatDecimal(movers.biasFalling),
    ],
    [`Its root mean square, ${formatNumber(movers.longLearners)} learners`, formatDecimal(movers.longRms)],
  ];
}

export function formatValidity(found: AnswerChecks): string {
  const { contradictions, pairs } = found.validity;
  const share = pairs === 0 ? '' : ` (${formatPercent(contradictions / pairs)})`;
  return [
    `Mastery: ${formatNumber(contradictions)} of ${formatNumber(pairs)} pairs contradict their last ten answers${share}.`,
    formatTable(buildRows(found).slice(1)),
  ].join('\n');
}

export function validitySection(found: AnswerChecks): string {
  const text =
    'Pairs of a learner and a skill with ten or more answers, by mastery after their last one. Mastery contradicts the answers if it is .7 or more with at most four of the last ten and two of the last four right, or below .6 with nine of the last ten right. Learners who rise or fall: their share right of the last 50 answers differs by .2 or more from that of the first 50.';
  return section('Mastery and the answers', text, htmlTable(['Found', 'Figure'], buildRows(found)));
}

export const formatMonotone = (found: MonotoneCheck): string =>
  `For another item of the skill, a right answer lowered the served probability ${formatNumber(found.rightLowers)} times\nand a wrong one raised it ${formatNumber(found.wrongRaises)} times, in ${formatNumber(found.probes)} probes, ${formatNumber(found.metItems)} of them of items that the learner knew.${found.furthest > 0 ? ` It moved by ${found.furthest.toExponential(1)} at most.` : ''}`;

export function monotoneSection(found: MonotoneCheck): string {
  const text =
    'For another item of the skill, a right answer must never lower the served probability, and a wrong one never raise it. Both outcomes of an answer are tried on the test learners as they were at that moment, and other items of its skill are looked at: questions without an item, items that the learner knew, and others of the log.';
  const violations = (count: number): Cell => ({
    text: formatNumber(count),
    look: count > 0 ? 'off' : undefined,
  });
  const rows: Row[] = [
    ['Probes', formatNumber(found.probes)],
    ['of them of items that the learner knew', formatNumber(found.metItems)],
    ['A right answer lowered it', violations(found.rightLowers)],
    ['A wrong answer raised it', violations(found.wrongRaises)],
    ['Furthest move against an answer', found.furthest === 0 ? 'none' : found.furthest.toExponential(1)],
  ];
  return section('Monotone as served', text, htmlTable(['Found', 'Count'], rows));
}

export const masteryChart = ({ byMastery }: AnswerChecks['validity']): string =>
  binChart('Next answer by mastery', 'mastery before the answer', { 'Served mastery': 'a' }, byMastery);

/** @param seriesColors one series */
export function binChart(
  title: string,
  x: string,
  seriesColors: Series,
  bins: ModelResult['reliability'],
): string {
  const [series = ''] = Object.keys(seriesColors);
  return chartFigure({
    ...{ title, x: shareAxis(x), y: shareAxis('share of right answers'), series: seriesColors },
    r: { range: [1.5, 7] },
    marks: [diagonalMark],
    points: bins.flatMap(({ answers, predicted, correct }): ChartPoint[] => {
      if (predicted === null || correct === null) return [];
      const note = `mean ${formatDecimal(predicted)}, right ${formatDecimal(correct)}, ${formatNumber(answers)} answers`;
      const isFew = answers < minObservations;
      return [{ series, x: predicted, y: correct, note, weight: answers, isFew }];
    }),
    counts: bins.map(({ low, high, answers }) => ({
      ...{ from: low, to: high, value: answers },
      note: `${formatDecimal(low)} to ${formatDecimal(high)}: ${formatNumber(answers)} answers`,
    })),
  });
}
