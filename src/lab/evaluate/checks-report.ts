import { chartFigure } from '../report/chart.js';
import { type ChartPoint, diagonalMark, type Series, shareAxis } from '../report/marks.js';
import { aligned, grouped } from '../report/numbers.js';
import { type Cell, fewObservations, htmlTable, type Row, section } from '../report/page.js';
import type { MonotoneCheck } from './probe.js';
import type { ModelResult } from './results.js';
import type { AnswerChecks } from './validity.js';

const percent = (share: number | null): string => (share === null ? 'none' : `${(100 * share).toFixed(1)} %`);

const shareOf = (count: number, all: number): string =>
  `${grouped(count)} of ${grouped(all)} (${percent(all === 0 ? null : count / all)})`;

const decimal = (figure: number | null): string => figure?.toFixed(3) ?? 'none';

function rowsOf({ validity, movers }: AnswerChecks): (readonly [label: string, figure: string])[] {
  const { masteredThenAccuracy: next, masteredThenLow: low, masteredThenHigh: high } = validity;
  return [
    ['Mastery contradicts the last ten answers', shareOf(validity.contradictions, validity.pairs)],
    ['Mastered with at most six of the last ten right', shareOf(validity.masteredAt60, validity.pairs)],
    ['From the sixth answer on, moves by more than .5', shareOf(validity.jumps, validity.settledAnswers)],
    ['Right of the next five after mastery of .95', `${percent(next)} (${percent(low)} to ${percent(high)})`],
    ['Right before it, from the sixth answer on', percent(validity.unmasteredThenAccuracy)],
    [`Predicted less right, ${grouped(movers.rising)} rising learners`, decimal(movers.biasRising)],
    [`Predicted less right, ${grouped(movers.falling)} falling learners`, decimal(movers.biasFalling)],
    [`Its root mean square, ${grouped(movers.longLearners)} learners`, decimal(movers.longRms)],
  ];
}

export function validityText(found: AnswerChecks): string {
  const { contradictions, pairs } = found.validity;
  const share = pairs === 0 ? '' : ` (${percent(contradictions / pairs)})`;
  return [
    `Mastery: ${grouped(contradictions)} of ${grouped(pairs)} pairs contradict their last ten answers${share}.`,
    aligned(rowsOf(found).slice(1)),
  ].join('\n');
}

export function validitySection(found: AnswerChecks): string {
  const text =
    'Pairs of a learner and a skill with ten or more answers, by mastery after their last one. Mastery contradicts the answers if it is .7 or more with at most four of the last ten and two of the last four right, or below .6 with nine of the last ten right. Learners who rise or fall: their share right of the last 50 answers differs by .2 or more from that of the first 50.';
  return section('Mastery and the answers', text, htmlTable(['Found', 'Figure'], rowsOf(found)));
}

export const monotoneText = (found: MonotoneCheck): string =>
  `For another item of the skill, a right answer lowered the served probability ${grouped(found.rightLowers)} times\nand a wrong one raised it ${grouped(found.wrongRaises)} times, in ${grouped(found.probes)} probes, ${grouped(found.metItems)} of them of items that the learner knew.${found.furthest > 0 ? ` It moved by ${found.furthest.toExponential(1)} at most.` : ''}`;

export function monotoneSection(found: MonotoneCheck): string {
  const text =
    'For another item of the skill, a right answer must never lower the served probability, and a wrong one never raise it. Both outcomes of an answer are tried on the test learners as they were at that moment, and other items of its skill are looked at: questions without an item, items that the learner knew, and others of the log.';
  const violations = (count: number): Cell => ({ text: grouped(count), look: count > 0 ? 'off' : undefined });
  const rows: Row[] = [
    ['Probes', grouped(found.probes)],
    ['of them of items that the learner knew', grouped(found.metItems)],
    ['A right answer lowered it', violations(found.rightLowers)],
    ['A wrong answer raised it', violations(found.wrongRaises)],
    ['Furthest move against an answer', found.furthest === 0 ? 'none' : found.furthest.toExponential(1)],
  ];
  return section('Monotone as served', text, htmlTable(['Found', 'Count'], rows));
}

export const masteryChart = ({ byMastery }: AnswerChecks['validity']): string =>
  binChart('Next answer by mastery', 'mastery before the answer', { 'Served mastery': 'a' }, byMastery);

/** @param seriesColors one series */
export function binChart(title: string, x: string, shown: Series, bins: ModelResult['reliability']): string {
  const [series = ''] = Object.keys(shown);
  return chartFigure({
    ...{ title, x: shareAxis(x), y: shareAxis('share of right answers'), series: shown },
    r: { range: [1.5, 7] },
    marks: [diagonalMark],
    points: bins.flatMap(({ answers, predicted, correct }): ChartPoint[] => {
      if (predicted === null || correct === null) return [];
      const note = `mean ${decimal(predicted)}, right ${decimal(correct)}, ${grouped(answers)} answers`;
      const isFew = answers < fewObservations;
      return [{ series, x: predicted, y: correct, note, weight: answers, isFew }];
    }),
    counts: bins.map(({ low, high, answers }) => ({
      ...{ from: low, to: high, value: answers },
      note: `${decimal(low)} to ${decimal(high)}: ${grouped(answers)} answers`,
    })),
  });
}
