/** The evaluation as a page for people. */
import type { Metrics, ReliabilityBin } from '../../domain/base/metrics.js';
import { type ChartPoint, type ChartSeries, chartFigure, type SeriesStyle } from '../report/chart.js';
import { grouped, rangeText } from '../report/numbers.js';
import { type Cell, chartGrid, htmlPage, htmlTable, section } from '../report/page.js';
import { domainAround } from '../report/scale.js';
import type { CurvePoint } from './curves.js';
import { type ModelName, type ModelResult, modelNames, type Results, type SizeBand } from './results.js';

/** What the page tells beside the results. */
export interface PageFacts {
  readonly file: string;
  readonly fold: number;
  readonly test: { readonly rows: number; readonly learners: number };
  readonly training: { readonly rows: number; readonly learners: number };
  /** Ids of the skills by their number. */
  readonly skillIds: readonly string[];
}

const titles: Readonly<Record<ModelName, string>> = {
  overall_mean: 'Overall mean',
  skill_mean: 'Mean of the skill',
  bkt: 'Plain BKT, fitted',
  served: 'Served model',
};

const styles: Readonly<Record<ModelName, SeriesStyle>> = {
  overall_mean: 'd',
  skill_mean: 'c',
  bkt: 'b',
  served: 'a',
};

/** @returns a whole HTML document */
export function evaluationPage(facts: PageFacts, results: Results): string {
  return htmlPage(`Evaluation of ${facts.file}, fold ${facts.fold}`, [
    figuresSection(facts, results.models),
    reliabilitySection(results.models),
    curvesSection(results),
    skillsSection(facts, results),
  ]);
}

const figure = (value: number | null, digits = 4): string =>
  value === null ? 'none' : value.toFixed(digits);
const percent = (value: number): string => `${Math.round(100 * value)} %`;

function figuresSection({ test, training }: PageFacts, models: readonly ModelResult[]): string {
  const text = `${grouped(test.rows)} answers of ${grouped(test.learners)} learners, each predicted from the learner’s earlier answers only, by models trained on ${grouped(training.rows)} answers of ${grouped(training.learners)} other learners. AUC is better the higher, as is accuracy; RMSE, log loss and the calibration error (ECE) are better the lower.`;
  const columns: readonly (readonly [string, keyof Metrics, 1 | -1])[] = [
    ['AUC', 'auc', 1],
    ['RMSE', 'rmse', -1],
    ['Log loss, nats', 'logLoss', -1],
    ['Accuracy at .5', 'accuracy', 1],
    ['ECE', 'ece', -1],
  ];
  const best = columns.map(([, key, sign]) =>
    Math.max(...models.map(({ metrics }) => sign * (metrics[key] ?? 0))),
  );
  const rows = models.map(({ name, metrics }): Cell[] => [
    { text: titles[name] },
    ...columns.map(([, key, sign], i) => ({
      text: figure(metrics[key]),
      // The overall mean is calibrated by its nature, without telling anything.
      best: name !== 'overall_mean' && sign * (metrics[key] ?? 0) === best[i],
    })),
  ]);
  return section('Figures', text, htmlTable(['Model', ...columns.map(([head]) => head)], rows));
}

function reliabilitySection(models: readonly ModelResult[]): string {
  const text =
    'Answers in 15 bins by their prediction: the share that was right against the mean prediction. On the dashed line, predictions come true as often as they say; below it they promise too much. Dots grow with the answers of their bin, which the bars count.';
  return section('Reliability', text, chartGrid(models.toReversed().map(reliabilityChart)));
}

const unit = { low: 0, high: 1 } as const;

function reliabilityChart({ name, metrics, reliability }: ModelResult): string {
  const most = Math.max(...reliability.map(({ answers }) => answers));
  const points = reliability.flatMap((bin) => reliabilityPoint(bin, most));
  return chartFigure({
    title: `${titles[name]}: ECE ${figure(metrics.ece)}`,
    x: { ...unit, label: 'predicted probability of a right answer', format: percent },
    y: { ...unit, label: 'share of right answers', format: percent },
    series: [{ name: titles[name], style: styles[name], points }],
    diagonal: true,
    bars: {
      label: 'answers',
      values: reliability.map(({ low, high, answers }) => ({
        from: low,
        to: high,
        count: answers,
        note: `${figure(low, 3)} to ${figure(high, 3)}: ${grouped(answers)} answers`,
      })),
    },
    height: 440,
  });
}

/** Dots grow with the answers behind them: a small one may be off the line by chance. */
function reliabilityPoint({ answers, predicted, correct }: ReliabilityBin, most: number): ChartPoint[] {
  if (predicted === null || correct === null) return [];
  const note = `predicted ${figure(predicted, 3)}, right ${figure(correct, 3)}, ${grouped(answers)} answers`;
  return [{ x: predicted, y: correct, note, radius: 2 + 5 * Math.sqrt(answers / most) }];
}

function curvesSection({ byAttempt, byAnswer }: Results): string {
  const text =
    'Share of right answers and mean predictions as practice goes on. Later points hold other learners and skills than earlier ones, for not all go on: the curves show how predictions follow the answers, not how much is learned.';
  return section(
    'Learning curves',
    text,
    chartGrid([
      curveChart('By attempt on the skill', 'attempt on the skill, number', byAttempt, false),
      curveChart('By answer of the learner', 'answer of the learner, number', byAnswer, true),
    ]),
  );
}

/** Width of the band of shares that a curve shows at least, so that noise does not look like news. */
const leastShares = 0.2;

function curveChart(
  title: string,
  label: string,
  points: readonly CurvePoint[],
  logarithmic: boolean,
): string {
  const shares = points.flatMap(({ correct, predicted }) => [correct, ...predicted]);
  const bars = points.map((point) => ({
    from: point.from - halfBar,
    to: point.to + halfBar,
    count: point.answers,
    note: `${numbersOf(point)}: ${grouped(point.answers)} answers`,
  }));
  return chartFigure({
    title,
    x: { low: 1 - halfBar, high: bars.at(-1)?.to ?? 1, logarithmic, label, format: grouped },
    y: { ...domainAround(shares, unit, leastShares), label: 'share of right answers', format: percent },
    series: [
      ...modelNames.map((name, model) => predictedSeries(points, name, model)),
      observedSeries(points),
    ],
    bars: { label: 'answers', values: bars },
    height: 440,
  });
}

/** Bars of neighbouring numbers leave a gap; below 1 the first one stays above 0 on a logarithmic axis. */
const halfBar = 0.4;

const numbersOf = ({ from, to }: CurvePoint): string =>
  from === to ? `number ${grouped(from)}` : `numbers ${grouped(from)} to ${grouped(to)}`;

/** The middle of the numbers in ratio, which for a single one is itself. */
const curvePoint = (point: CurvePoint, y: number): ChartPoint => ({
  x: Math.sqrt(point.from * point.to),
  y,
  note: `${figure(y, 3)} at ${numbersOf(point)}, ${grouped(point.answers)} answers`,
  radius: 2.5,
});

const observedSeries = (points: readonly CurvePoint[]): ChartSeries => ({
  name: 'What was answered',
  style: 'observed',
  points: points.map((point) => curvePoint(point, point.correct)),
});

const predictedSeries = (points: readonly CurvePoint[], name: ModelName, model: number): ChartSeries => ({
  name: titles[name],
  style: styles[name],
  points: points.map((point) => curvePoint(point, point.predicted[model] as number)),
});

function skillsSection(facts: PageFacts, { bySize, worstSkills }: Results): string {
  const sizes = section(
    'AUC by size of the skill',
    'Test answers grouped by how many training answers their skill has: the fewer there are, the more a model has to know from elsewhere.',
    htmlTable(
      ['Training answers', 'Skills', 'Test answers', ...modelNames.map((name) => titles[name])],
      bySize.map((band) => sizeRow(band)),
    ),
  );
  if (worstSkills.length === 0) return sizes;
  const worst = section(
    'Skills that the served model predicts worst',
    'Among skills with at least 100 test answers, those where the mean prediction is farthest from what was answered.',
    htmlTable(
      ['Skill', 'Test answers', 'Mean prediction', 'Share right', 'Gap'],
      worstSkills.map(({ skill, answers, predicted, correct }) =>
        [
          facts.skillIds[skill] ?? '',
          grouped(answers),
          figure(predicted, 3),
          figure(correct, 3),
          signed(predicted - correct),
        ].map((text) => ({ text })),
      ),
    ),
  );
  return sizes + worst;
}

const signed = (gap: number): string => `${gap < 0 ? '\u2212' : '+'}${Math.abs(gap).toFixed(3)}`;

function sizeRow({ from, to, skills, answers, auc }: SizeBand): Cell[] {
  // Half is what a constant reaches: nothing to point at.
  const best = Math.max(0.5, ...auc.map((value) => value ?? 0));
  return [
    { text: rangeOf(from, to) },
    { text: grouped(skills) },
    { text: grouped(answers) },
    ...auc.map((value) => ({ text: figure(value), best: value === best && best > 0.5 })),
  ];
}

function rangeOf(from: number, to: number): string {
  if (to === 0) return 'none';
  return rangeText(from, to === Number.POSITIVE_INFINITY ? null : to);
}
