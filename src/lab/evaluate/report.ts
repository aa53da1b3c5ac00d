import { basename } from 'node:path';
import { type Chart, chartFigure } from '../report/chart.js';
import { formatJsonLine, formatNumber, formatRange } from '../report/format.js';
import { type ChartPoint, computeDomain, logAxis, shareAxis } from '../report/marks.js';
import { buildPartRows, partHead } from '../report/model-parts.js';
import {
  type Cell,
  chartGrid,
  htmlPage,
  htmlTable,
  minObservations,
  type Row,
  section,
  textTable,
  textTag,
} from '../report/page.js';
import { type RunInfo, renderRunInfo } from '../report/run-info.js';
import {
  binChart,
  formatMonotone,
  formatValidity,
  masteryChart,
  monotoneSection,
  validitySection,
} from './checks-report.js';
import type { MonotoneCheck } from './probe.js';
import {
  type AucEstimate,
  type CurvePoint,
  type EvaluationResults,
  type ModelName,
  type ModelResult,
  modelNames,
  type SizeBand,
} from './results.js';
import type { TrainedModels } from './train.js';
import type { AnswerChecks } from './validity.js';

type TrainingFigures = TrainedModels['figures'];

export interface Evaluation extends TrainingFigures, AnswerChecks {
  readonly file: string;
  readonly fold: number;
  readonly split: keyof typeof splitTexts;
  readonly test: { readonly rows: number; readonly learners: number };
  readonly train: Evaluation['test'];
  /** Rejected rows. */
  readonly leftOut: number;
  readonly fit: TrainingFigures['fit'] & { readonly threads: number };
  readonly predict: { readonly seconds: number };
  readonly monotone: MonotoneCheck;
  readonly results: EvaluationResults;
}

const splitTexts = {
  fold: 'folds of the file',
  hash: 'folds by a hash of user_id',
  mixed: 'folds of the file, by a hash of user_id where it has none',
} as const;

export function serializeEvaluation(evaluation: Evaluation, run: RunInfo): string {
  const { test, fit, file, fold, split, train, leftOut, results, ...found } = evaluation;
  const byModel = (of: (model: ModelResult) => object) =>
    Object.fromEntries(results.models.map((model) => [model.name, of(model)]));
  const models = byModel(({ metrics }) => metrics);
  const reliability = byModel((model) => model.reliability);
  const input = { fit, file, fold, split, train, leftOut, run };
  return formatJsonLine({ ...test, models, ...input, ...found, reliability }, 6);
}

export function formatEvaluation(evaluation: Evaluation): string {
  const { file, fold, split, test, train, results } = evaluation;
  const bins = results.models.find(({ name }) => name === 'served')?.reliability ?? [];
  const about = `${file}, fold ${fold} (${splitTexts[split]})
${formatCounts(test)} predicted, trained on ${formatCounts(train)}`;
  const binTable = textTable(['Predicted', 'Answers', 'Mean', 'Right', 'Gap'], bins.map(binRow));
  return [
    `${about}\n${formatFit(evaluation)}`,
    textTable(figuresHead, figureRows(evaluation)),
    formatMonotone(evaluation.monotone),
    formatValidity(evaluation),
    `Parts of the served model, by cross-fit on training answers:\n${textTable(partHead, buildPartRows(evaluation.parts))}`,
    `Reliability of the served model:\n${binTable}`,
  ].join('\n\n');
}

const formatThreads = (threads: number): string => `${threads} ${threads === 1 ? 'thread' : 'threads'}`;

const formatFit = ({ fit, servedFit, predict }: Evaluation): string =>
  `BKT fitted in ${fit.seconds.toFixed(2)} s (${formatNumber(fit.iterations)} iterations), everything in ${servedFit.seconds.toFixed(2)} s, ${formatThreads(fit.threads)}, ${formatNumber(Math.round(servedFit.peakBytes / 1e6))} MB of memory at most;\n${formatNumber(servedFit.skillPairs)} pairs of skills and ${formatNumber(servedFit.itemPairs)} of items have terms; predicted in ${predict.seconds.toFixed(2)} s with the probes`;

function binRow({ low, high, answers, predicted, correct }: ModelResult['reliability'][number]): Row {
  const figures = predicted === null || correct === null ? [] : [predicted, correct, predicted - correct];
  const cells = figures.map((value) => createCell(formatFigure(value), answers));
  return [`${low.toFixed(3)} to ${high.toFixed(3)}`, formatNumber(answers), ...cells];
}

const createCell = (text: string, answers: number, isBest = false): Cell => ({
  text,
  look: answers < minObservations ? 'few' : isBest ? 'best' : undefined,
});

const formatCounts = ({ rows, learners }: Evaluation['test']): string =>
  `${formatNumber(rows)} answers of ${formatNumber(learners)} learners`;

const formatFigure = (value: number | null, digits = 4): string => value?.toFixed(digits) ?? 'none';

const formatAuc = ({ auc, margin }: AucEstimate): string =>
  margin === null ? formatFigure(auc) : `${formatFigure(auc)} ± ${formatFigure(margin)}`;

const figuresHead = ['Model', 'AUC', 'RMSE', 'Log loss', 'Accuracy', 'ECE', 'Answers'];

/** Higher is better: losses are negated. */
const figureColumns: readonly ((model: ModelResult) => number)[] = [
  ({ auc }) => auc.auc ?? 0,
  ({ metrics }) => -metrics.rmse,
  ({ metrics }) => -metrics.logLoss,
  ({ metrics }) => metrics.accuracy,
  ({ metrics }) => -metrics.ece,
];

function figureRows({ test, results }: Evaluation, formatName = (name: ModelName): string => name): Row[] {
  // The overall mean is always calibrated, so it never counts as best.
  const rivals = results.models.filter(({ name }) => name !== 'overall_mean');
  return results.models.map((model) => [
    formatName(model.name),
    ...figureColumns.map((of, i) => {
      const isBest = rivals.includes(model) && of(model) === Math.max(...rivals.map(of));
      return createCell(
        i === 0 ? formatAuc(model.auc) : formatFigure(Math.abs(of(model))),
        test.rows,
        isBest,
      );
    }),
    formatNumber(test.rows),
  ]);
}

const modelStyles: Readonly<Record<ModelName, { readonly title: string; readonly color: string }>> = {
  overall_mean: { title: 'Overall mean', color: 'd' },
  skill_mean: { title: 'Mean of the skill', color: 'c' },
  bkt: { title: 'Plain BKT, fitted', color: 'b' },
  served: { title: 'Served model', color: 'a' },
};
const getModelTitle = (name: ModelName): string => modelStyles[name].title;

export function renderEvaluation(evaluation: Evaluation, run: RunInfo): string {
  const { fold, results } = evaluation;
  return htmlPage(`Evaluation of ${basename(evaluation.file)}, fold ${fold}`, [
    renderRunInfo(run, describeSettings(evaluation)),
    figuresSection(evaluation),
    validitySection(evaluation),
    monotoneSection(evaluation.monotone),
    fitSection(evaluation),
    reliabilitySection(evaluation),
    curvesSection(results),
    sizesSection(results),
    worstSection(results),
  ]);
}

function figuresSection(evaluation: Evaluation): string {
  const text = `${formatCounts(evaluation.test)}. Each is predicted from the learner’s earlier answers, by models trained on the ${formatCounts(evaluation.train)} of other folds. AUC and accuracy (at .5) are better the higher; RMSE, log loss (nats) and the calibration error (ECE) are better the lower. ± is half the 95 % interval over learners.`;
  return section('Figures', text, htmlTable(figuresHead, figureRows(evaluation, getModelTitle)));
}

const describeSettings = ({
  file,
  fold,
  split,
  leftOut,
  fit,
}: Evaluation): Readonly<Record<string, string>> => ({
  File: `${basename(file)}, ${formatNumber(leftOut)} rows left out`,
  Fold: `${fold}, ${splitTexts[split]}`,
  Fit: `${formatThreads(fit.threads)}, ${formatNumber(fit.observations)} answers`,
});

function fitSection(evaluation: Evaluation): string {
  const text =
    'Parts of the served model that are published only where they help learners whom a fit did not see: fits on some of the training learners predict the others. Each part is tried beside those before it that help.';
  return section(
    'Parts of the served model',
    text,
    htmlTable(partHead, buildPartRows(evaluation.parts)),
    textTag('p', {}, `${formatFit(evaluation)}.`),
  );
}

function reliabilitySection({ results, validity }: Evaluation): string {
  const text =
    'Answers in 15 bins by their prediction: the share that was right against the mean prediction. On the dashed line predictions come true as often as they say; below it they promise too much. Dots grow with the answers of their bin, which the bars count; hollow ones rest on fewer than 200 answers. The last chart has the same answers in tenths by mastery before them, which is no prediction.';
  const x = 'predicted probability of a right answer';
  const charts = results.models.toReversed().map(({ name, metrics, reliability }) => {
    const { title, color } = modelStyles[name];
    return binChart(`${title}: ECE ${formatFigure(metrics.ece)}`, x, { [title]: color }, reliability);
  });
  return section('Reliability', text, chartGrid([...charts, masteryChart(validity)]));
}

function curvesSection({ byAttempt, byAnswer }: EvaluationResults): string {
  const text =
    'Share of right answers and mean predictions as practice goes on. Later points hold other learners and skills than earlier ones, for not all go on: the curves show how predictions follow the answers, not how much is learned. Hollow dots rest on fewer than 200 answers.';
  const domainOf = (points: readonly CurvePoint[]) =>
    [1 - halfBar, (points.at(-1)?.to ?? 1) + halfBar] as const;
  const attempts = { domain: domainOf(byAttempt), label: 'attempt on the skill, number' };
  const answers = logAxis('answer of the learner, number', domainOf(byAnswer));
  const charts = [
    curveChart('By attempt on the skill', byAttempt, attempts),
    curveChart('By answer of the learner', byAnswer, answers),
  ];
  return section('Learning curves', text, chartGrid(charts));
}

/** Below .5: bars have gaps, and the first one starts above 0 on the logarithmic axis. */
const halfBar = 0.4;
const observedSeries = 'What was answered';
const curveColors = {
  [observedSeries]: 'text',
  ...Object.fromEntries(Object.values(modelStyles).map(({ title, color }) => [title, color])),
};

function curveChart(title: string, points: readonly CurvePoint[], x: Chart['x']): string {
  const shares = points.flatMap(({ correct, predicted }) => [correct, ...predicted]);
  const line = (series: string, of: (point: CurvePoint) => number): ChartPoint[] =>
    points.map((point) => ({
      series,
      // Geometric mean.
      x: Math.sqrt(point.from * point.to),
      y: of(point),
      isFew: point.answers < minObservations,
      note: `${formatFigure(of(point), 3)} at ${formatNumbers(point)}`,
    }));
  return chartFigure({
    title,
    x,
    y: shareAxis('share of right answers', computeDomain(shares, [0, 1], 0.2)),
    series: curveColors,
    points: [
      ...modelNames.flatMap((name, i) =>
        line(getModelTitle(name), ({ predicted }) => predicted[i] as number),
      ),
      ...line(observedSeries, ({ correct }) => correct),
    ],
    counts: points.map((point) => ({
      from: point.from - halfBar,
      to: point.to + halfBar,
      value: point.answers,
      note: formatNumbers(point),
    })),
  });
}

const formatNumbers = ({ from, to, answers }: CurvePoint): string =>
  `${from === to ? `number ${formatNumber(from)}` : `numbers ${formatRange(from, to)}`}: ${formatNumber(answers)} answers`;

function sizesSection({ bySize }: EvaluationResults): string {
  const text = `Test answers grouped by how many training answers their skill has: the fewer there are, the more a model has to know from elsewhere. ± is half the 95 % interval over learners. Grey italics rest on fewer than ${minObservations} answers: chance.`;
  const head = ['Training answers', 'Skills', 'Test answers', ...modelNames.map(getModelTitle)];
  return section('AUC by size of the skill', text, htmlTable(head, bySize.map(sizeRow), true));
}

function sizeRow({ from, to, skills, answers, auc }: SizeBand): Row {
  const range = to === 0 ? 'none' : formatRange(from, Number.isFinite(to) ? to : null);
  // A constant prediction has .5.
  const best = Math.max(0.5, ...auc.map((one) => one.auc ?? 0));
  const areas = auc.map((one) => createCell(formatAuc(one), answers, one.auc === best && best > 0.5));
  return [range, formatNumber(skills), formatNumber(answers), ...areas];
}

function worstSection({ worstSkills }: EvaluationResults): string {
  if (worstSkills.length === 0) return '';
  const rows = worstSkills.map(({ skillId, answers, predicted, correct, gap }): Row => {
    const text = `${gap < 0 ? '\u2212' : '+'}${formatFigure(Math.abs(gap), 3)}`;
    const cells = [formatFigure(predicted, 3), formatFigure(correct, 3), text].map((shown) =>
      createCell(shown, answers),
    );
    return [skillId, formatNumber(answers), ...cells];
  });
  return section(
    'Skills that the served model predicts worst',
    'Among skills with at least 100 test answers, those where the mean prediction is farthest from what was answered.',
    htmlTable(['Skill', 'Test answers', 'Mean prediction', 'Share right', 'Gap'], rows),
  );
}
