/** The evaluation as a page for people. */
import type { ReliabilityBin } from '../../domain/base/metrics.js';
import {
  type Chart,
  type ChartPoint,
  chartFigure,
  colorsOf,
  diagonalMark,
  domainAround,
  ratioAxis,
  type SeriesColor,
  seriesMarks,
  shareAxis,
} from '../report/chart.js';
import { grouped, rangeText } from '../report/numbers.js';
import {
  type Cell,
  chartGrid,
  fewObservations,
  htmlPage,
  htmlTable,
  runText,
  section,
  textTag,
} from '../report/page.js';
import type { AucEstimate } from './auc.js';
import type { CurvePoint } from './curves.js';
import { type ModelName, type ModelResult, modelNames, type Results, type SizeBand } from './results.js';
import type { MonotoneCheck } from './served.js';

/** What the page says beside the results. */
export interface PageFacts {
  readonly file: string;
  readonly fold: number;
  readonly test: { readonly rows: number; readonly learners: number };
  readonly training: { readonly rows: number; readonly learners: number };
  readonly monotone: MonotoneCheck;
  /** Ids of the skills by their number. */
  readonly skillIds: readonly string[];
  /** The command line that made it. */
  readonly command: string;
}

const titles: Readonly<Record<ModelName, string>> = {
  overall_mean: 'Overall mean',
  skill_mean: 'Mean of the skill',
  bkt: 'Plain BKT, fitted',
  served: 'Served model',
};

const colors: Readonly<Record<ModelName, SeriesColor>> = {
  overall_mean: 'd',
  skill_mean: 'c',
  bkt: 'b',
  served: 'a',
};

/** @returns a whole HTML document */
export function evaluationPage(facts: PageFacts, results: Results): string {
  return htmlPage(`Evaluation of ${facts.file}, fold ${facts.fold}`, [
    runText(facts.command),
    figuresSection(facts, results.models),
    reliabilitySection(results.models),
    curvesSection(results),
    sizesSection(results),
    worstSection(facts, results),
  ]);
}

const figure = (value: number | null, digits = 4): string => value?.toFixed(digits) ?? 'none';

const aucText = ({ auc, margin }: AucEstimate): string =>
  margin === null ? figure(auc) : `${figure(auc)} ± ${figure(margin)}`;

function figuresSection({ test, training, monotone }: PageFacts, models: readonly ModelResult[]): string {
  const text = `${grouped(test.rows)} answers of ${grouped(test.learners)} learners. Each is predicted from the learner’s earlier answers, by models trained on ${grouped(training.rows)} answers of ${grouped(training.learners)} other learners. AUC and accuracy are better the higher; RMSE, log loss and the calibration error (ECE) are better the lower. ± is half the 95 % interval over learners.`;
  const columns = [
    ['RMSE', 'rmse', -1],
    ['Log loss, nats', 'logLoss', -1],
    ['Accuracy at .5', 'accuracy', 1],
    ['ECE', 'ece', -1],
  ] as const;
  // The overall mean is calibrated by its nature, and predicts nothing.
  const rivals = models.filter(({ name }) => name !== 'overall_mean');
  const look = (model: ModelResult, of: (one: ModelResult) => number): Cell['look'] => {
    if (test.rows < fewObservations) return 'few';
    return rivals.includes(model) && of(model) === Math.max(...rivals.map(of)) ? 'best' : undefined;
  };
  const rows = models.map((model): (Cell | string)[] => [
    titles[model.name],
    { text: aucText(model.auc), look: look(model, ({ auc }) => auc.auc ?? 0) },
    ...columns.map(([, key, sign]) => ({
      text: figure(model.metrics[key]),
      look: look(model, ({ metrics }) => sign * metrics[key]),
    })),
  ]);
  const { probes, rightLowers, wrongRaises } = monotone;
  const check = `For another item of the skill, a right answer lowered the served probability ${grouped(rightLowers)} times and a wrong one raised it ${grouped(wrongRaises)} times, in ${grouped(probes)} probes.`;
  const table = htmlTable(['Model', 'AUC', ...columns.map(([head]) => head)], rows);
  return section('Figures', text, table, textTag('p', {}, check));
}

function reliabilitySection(models: readonly ModelResult[]): string {
  const text =
    'Answers in 15 bins by their prediction: the share that was right against the mean prediction. On the dashed line predictions come true as often as they say; below it they promise too much. Dots grow with the answers of their bin, which the bars count.';
  return section('Reliability', text, chartGrid(models.toReversed().map(reliabilityChart)));
}

const reliabilityChart = ({ name, metrics, reliability }: ModelResult): string =>
  chartFigure({
    title: `${titles[name]}: ECE ${figure(metrics.ece)}`,
    x: shareAxis('predicted probability of a right answer'),
    y: shareAxis('share of right answers'),
    color: colorsOf({ [titles[name]]: colors[name] }),
    r: { range: [1.5, 7] },
    marks: [diagonalMark, ...seriesMarks(reliability.flatMap((bin) => reliabilityPoint(name, bin)))],
    counts: reliability.map(({ low, high, answers }) => ({
      from: low,
      to: high,
      value: answers,
      note: `${figure(low, 3)} to ${figure(high, 3)}: ${grouped(answers)} answers`,
    })),
  });

/** A small dot may be off the line by chance. */
function reliabilityPoint(name: ModelName, { answers, predicted, correct }: ReliabilityBin): ChartPoint[] {
  if (predicted === null || correct === null) return [];
  const note = `predicted ${figure(predicted, 3)}, right ${figure(correct, 3)}, ${grouped(answers)} answers`;
  return [{ series: titles[name], x: predicted, y: correct, note, weight: answers }];
}

function curvesSection({ byAttempt, byAnswer }: Results): string {
  const text =
    'Share of right answers and mean predictions as practice goes on. Later points hold other learners and skills than earlier ones, for not all go on: the curves show how predictions follow the answers, not how much is learned.';
  const last = byAttempt.at(-1)?.to ?? 1;
  const lastAnswer = byAnswer.at(-1)?.to ?? 1;
  const attempts = { domain: [1 - halfBar, last + halfBar], label: 'attempt on the skill, number' };
  const answers = ratioAxis('answer of the learner, number', [1 - halfBar, lastAnswer + halfBar]);
  return section(
    'Learning curves',
    text,
    chartGrid([
      curveChart('By attempt on the skill', byAttempt, attempts),
      curveChart('By answer of the learner', byAnswer, answers),
    ]),
  );
}

/** Bars of neighbouring numbers leave a gap; below 1 the first one stays above 0 on a logarithmic axis. */
const halfBar = 0.4;
const observed = 'What was answered';

function curveChart(title: string, points: readonly CurvePoint[], x: Chart['x']): string {
  const shares = points.flatMap(({ correct, predicted }) => [correct, ...predicted]);
  const names = modelNames.map((name) => titles[name]);
  return chartFigure({
    title,
    x,
    y: shareAxis('share of right answers', domainAround(shares, [0, 1], 0.2)),
    color: colorsOf({
      [observed]: 'text',
      ...Object.fromEntries(modelNames.map((name) => [titles[name], colors[name]])),
    }),
    marks: seriesMarks([
      ...names.flatMap((name, i) =>
        points.map((point) => curvePoint(name, point, point.predicted[i] as number)),
      ),
      ...points.map((point) => curvePoint(observed, point, point.correct)),
    ]),
    counts: points.map((point) => ({
      from: point.from - halfBar,
      to: point.to + halfBar,
      value: point.answers,
      note: `${numbersOf(point)}: ${grouped(point.answers)} answers`,
    })),
  });
}

const numbersOf = ({ from, to }: CurvePoint): string =>
  from === to ? `number ${grouped(from)}` : `numbers ${grouped(from)} to ${grouped(to)}`;

/** At the geometric mean of the numbers. */
const curvePoint = (series: string, point: CurvePoint, y: number): ChartPoint => ({
  series,
  x: Math.sqrt(point.from * point.to),
  y,
  note: `${figure(y, 3)} at ${numbersOf(point)}, ${grouped(point.answers)} answers`,
});

const sizesSection = ({ bySize }: Results): string =>
  section(
    'AUC by size of the skill',
    `Test answers grouped by how many training answers their skill has: the fewer there are, the more a model has to know from elsewhere. ± is half the 95 % interval over learners. Grey italics rest on fewer than ${fewObservations} answers: chance.`,
    htmlTable(
      ['Training answers', 'Skills', 'Test answers', ...modelNames.map((name) => titles[name])],
      bySize.map(sizeRow),
    ),
  );

function sizeRow({ from, to, skills, answers, auc }: SizeBand): (Cell | string)[] {
  const range = to === 0 ? 'none' : rangeText(from, Number.isFinite(to) ? to : null);
  // A constant reaches a half.
  const best = Math.max(0.5, ...auc.map((one) => one.auc ?? 0));
  const look = (value: number | null): Cell['look'] => {
    if (answers < fewObservations) return 'few';
    return value === best && best > 0.5 ? 'best' : undefined;
  };
  return [
    range,
    grouped(skills),
    grouped(answers),
    ...auc.map((one) => ({ text: aucText(one), look: look(one.auc) })),
  ];
}

function worstSection({ skillIds }: PageFacts, { worstSkills }: Results): string {
  if (worstSkills.length === 0) return '';
  return section(
    'Skills that the served model predicts worst',
    'Among skills with at least 100 test answers, those where the mean prediction is farthest from what was answered.',
    htmlTable(
      ['Skill', 'Test answers', 'Mean prediction', 'Share right', 'Gap'],
      worstSkills.map(({ skill, answers, predicted, correct }) => {
        const look = answers < fewObservations ? 'few' : undefined;
        const gap = { text: signed(predicted - correct), look } as const;
        return [skillIds[skill] ?? '', grouped(answers), figure(predicted, 3), figure(correct, 3), gap];
      }),
    ),
  );
}

const signed = (gap: number): string => `${gap < 0 ? '\u2212' : '+'}${Math.abs(gap).toFixed(3)}`;
