import { basename } from 'node:path';
import { type Chart, chartFigure } from '../report/chart.js';
import { type ChartPoint, domainAround, ratioAxis, shareAxis } from '../report/marks.js';
import { grouped, jsonLine, rangeText } from '../report/numbers.js';
import {
  type Cell,
  chartGrid,
  fewObservations,
  htmlPage,
  htmlTable,
  type Row,
  section,
  textTable,
  textTag,
} from '../report/page.js';
import { partHead, partRows } from '../report/parts.js';
import { type Run, runList } from '../report/run.js';
import {
  binChart,
  masteryChart,
  monotoneSection,
  monotoneText,
  validitySection,
  validityText,
} from './checks-report.js';
import type { MonotoneCheck } from './probe.js';
import {
  type AucEstimate,
  type CurvePoint,
  type ModelName,
  type ModelResult,
  modelNames,
  type Results,
  type SizeBand,
} from './results.js';
import type { Trained } from './train.js';
import type { AnswerChecks } from './validity.js';

type Figures = Trained['figures'];

export interface Evaluation extends Figures, AnswerChecks {
  readonly file: string;
  readonly fold: number;
  readonly split: keyof typeof splits;
  readonly test: { readonly rows: number; readonly learners: number };
  readonly train: Evaluation['test'];
  /** Rejected rows. */
  readonly leftOut: number;
  readonly fit: Figures['fit'] & { readonly threads: number };
  readonly predict: { readonly seconds: number };
  readonly monotone: MonotoneCheck;
  readonly results: Results;
}

const splits = {
  fold: 'folds of the file',
  hash: 'folds by a hash of user_id',
  mixed: 'folds of the file, by a hash of user_id where it has none',
} as const;

export function evaluationJson(evaluation: Evaluation, run: Run): string {
  const { test, fit, file, fold, split, train, leftOut, results, ...found } = evaluation;
  const byModel = (of: (model: ModelResult) => object) =>
    Object.fromEntries(results.models.map((model) => [model.name, of(model)]));
  const models = byModel(({ metrics }) => metrics);
  const reliability = byModel((model) => model.reliability);
  const input = { fit, file, fold, split, train, leftOut, run };
  return jsonLine({ ...test, models, ...input, ...found, reliability }, 6);
}

export function evaluationText(evaluation: Evaluation): string {
  const { file, fold, split, test, train, results } = evaluation;
  const bins = results.models.find(({ name }) => name === 'served')?.reliability ?? [];
  const about = `${file}, fold ${fold} (${splits[split]})
${countsText(test)} predicted, trained on ${countsText(train)}`;
  const binTable = textTable(['Predicted', 'Answers', 'Mean', 'Right', 'Gap'], bins.map(binRow));
  return [
    `${about}\n${fitText(evaluation)}`,
    textTable(figuresHead, figureRows(evaluation)),
    monotoneText(evaluation.monotone),
    validityText(evaluation),
    `Parts of the served model, by cross-fit on training answers:\n${textTable(partHead, partRows(evaluation.parts))}`,
    `Reliability of the served model:\n${binTable}`,
  ].join('\n\n');
}

const threadsText = (threads: number): string => `${threads} ${threads === 1 ? 'thread' : 'threads'}`;

const fitText = ({ fit, servedFit, predict }: Evaluation): string =>
  `BKT fitted in ${fit.seconds.toFixed(2)} s (${grouped(fit.iterations)} iterations), everything in ${servedFit.seconds.toFixed(2)} s, ${threadsText(fit.threads)}, ${grouped(Math.round(servedFit.peakBytes / 1e6))} MB of memory at most;\n${grouped(servedFit.skillPairs)} pairs of skills and ${grouped(servedFit.itemPairs)} of items have terms; predicted in ${predict.seconds.toFixed(2)} s with the probes`;

function binRow({ low, high, answers, predicted, correct }: ModelResult['reliability'][number]): Row {
  const figures = predicted === null || correct === null ? [] : [predicted, correct, predicted - correct];
  const cells = figures.map((value) => cellOf(figure(value), answers));
  return [`${low.toFixed(3)} to ${high.toFixed(3)}`, grouped(answers), ...cells];
}

const cellOf = (text: string, answers: number, isBest = false): Cell => ({
  text,
  look: answers < fewObservations ? 'few' : isBest ? 'best' : undefined,
});

const countsText = ({ rows, learners }: Evaluation['test']): string =>
  `${grouped(rows)} answers of ${grouped(learners)} learners`;

const figure = (value: number | null, digits = 4): string => value?.toFixed(digits) ?? 'none';

const aucText = ({ auc, margin }: AucEstimate): string =>
  margin === null ? figure(auc) : `${figure(auc)} ± ${figure(margin)}`;

const figuresHead = ['Model', 'AUC', 'RMSE', 'Log loss', 'Accuracy', 'ECE', 'Answers'];

/** Higher is better: losses are negated. */
const figureColumns: readonly ((model: ModelResult) => number)[] = [
  ({ auc }) => auc.auc ?? 0,
  ({ metrics }) => -metrics.rmse,
  ({ metrics }) => -metrics.logLoss,
  ({ metrics }) => metrics.accuracy,
  ({ metrics }) => -metrics.ece,
];

function figureRows({ test, results }: Evaluation, nameOf = (name: ModelName): string => name): Row[] {
  // The overall mean is always calibrated, so it never counts as best.
  const rivals = results.models.filter(({ name }) => name !== 'overall_mean');
  return results.models.map((model) => [
    nameOf(model.name),
    ...figureColumns.map((of, i) => {
      const isBest = rivals.includes(model) && of(model) === Math.max(...rivals.map(of));
      return cellOf(i === 0 ? aucText(model.auc) : figure(Math.abs(of(model))), test.rows, isBest);
    }),
    grouped(test.rows),
  ]);
}

const looks: Readonly<Record<ModelName, { readonly title: string; readonly color: string }>> = {
  overall_mean: { title: 'Overall mean', color: 'd' },
  skill_mean: { title: 'Mean of the skill', color: 'c' },
  bkt: { title: 'Plain BKT, fitted', color: 'b' },
  served: { title: 'Served model', color: 'a' },
};
const titleOf = (name: ModelName): string => looks[name].title;

export function evaluationPage(evaluation: Evaluation, run: Run): string {
  const { fold, results } = evaluation;
  return htmlPage(`Evaluation of ${basename(evaluation.file)}, fold ${fold}`, [
    runList(run, settingsOf(evaluation)),
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
  const text = `${countsText(evaluation.test)}. Each is predicted from the learner’s earlier answers, by models trained on the ${countsText(evaluation.train)} of other folds. AUC and accuracy (at .5) are better the higher; RMSE, log loss (nats) and the calibration error (ECE) are better the lower. ± is half the 95 % interval over learners.`;
  return section('Figures', text, htmlTable(figuresHead, figureRows(evaluation, titleOf)));
}

const settingsOf = ({ file, fold, split, leftOut, fit }: Evaluation): Readonly<Record<string, string>> => ({
  File: `${basename(file)}, ${grouped(leftOut)} rows left out`,
  Fold: `${fold}, ${splits[split]}`,
  Fit: `${threadsText(fit.threads)}, ${grouped(fit.observations)} answers`,
});

function fitSection(evaluation: Evaluation): string {
  const text =
    'Parts of the served model that are published only where they help learners whom a fit did not see: fits on some of the training learners predict the others. Each part is tried beside those before it that help.';
  return section(
    'Parts of the served model',
    text,
    htmlTable(partHead, partRows(evaluation.parts)),
    textTag('p', {}, `${fitText(evaluation)}.`),
  );
}

function reliabilitySection({ results, validity }: Evaluation): string {
  const text =
    'Answers in 15 bins by their prediction: the share that was right against the mean prediction. On the dashed line predictions come true as often as they say; below it they promise too much. Dots grow with the answers of their bin, which the bars count; hollow ones rest on fewer than 200 answers. The last chart has the same answers in tenths by mastery before them, which is no prediction.';
  const x = 'predicted probability of a right answer';
  const charts = results.models.toReversed().map(({ name, metrics, reliability }) => {
    const { title, color } = looks[name];
    return binChart(`${title}: ECE ${figure(metrics.ece)}`, x, { [title]: color }, reliability);
  });
  return section('Reliability', text, chartGrid([...charts, masteryChart(validity)]));
}

function curvesSection({ byAttempt, byAnswer }: Results): string {
  const text =
    'Share of right answers and mean predictions as practice goes on. Later points hold other learners and skills than earlier ones, for not all go on: the curves show how predictions follow the answers, not how much is learned. Hollow dots rest on fewer than 200 answers.';
  const domainOf = (points: readonly CurvePoint[]) =>
    [1 - halfBar, (points.at(-1)?.to ?? 1) + halfBar] as const;
  const attempts = { domain: domainOf(byAttempt), label: 'attempt on the skill, number' };
  const answers = ratioAxis('answer of the learner, number', domainOf(byAnswer));
  const charts = [
    curveChart('By attempt on the skill', byAttempt, attempts),
    curveChart('By answer of the learner', byAnswer, answers),
  ];
  return section('Learning curves', text, chartGrid(charts));
}

/** Below .5: bars have gaps, and the first one starts above 0 on the logarithmic axis. */
const halfBar = 0.4;
const observed = 'What was answered';
const curveColors = {
  [observed]: 'text',
  ...Object.fromEntries(Object.values(looks).map(({ title, color }) => [title, color])),
};

function curveChart(title: string, points: readonly CurvePoint[], x: Chart['x']): string {
  const shares = points.flatMap(({ correct, predicted }) => [correct, ...predicted]);
  const line = (series: string, of: (point: CurvePoint) => number): ChartPoint[] =>
    points.map((point) => ({
      series,
      // Geometric mean.
      x: Math.sqrt(point.from * point.to),
      y: of(point),
      isFew: point.answers < fewObservations,
      note: `${figure(of(point), 3)} at ${numbersOf(point)}`,
    }));
  return chartFigure({
    title,
    x,
    y: shareAxis('share of right answers', domainAround(shares, [0, 1], 0.2)),
    series: curveColors,
    points: [
      ...modelNames.flatMap((name, i) => line(titleOf(name), ({ predicted }) => predicted[i] as number)),
      ...line(observed, ({ correct }) => correct),
    ],
    counts: points.map((point) => ({
      from: point.from - halfBar,
      to: point.to + halfBar,
      value: point.answers,
      note: numbersOf(point),
    })),
  });
}

const numbersOf = ({ from, to, answers }: CurvePoint): string =>
  `${from === to ? `number ${grouped(from)}` : `numbers ${rangeText(from, to)}`}: ${grouped(answers)} answers`;

function sizesSection({ bySize }: Results): string {
  const text = `Test answers grouped by how many training answers their skill has: the fewer there are, the more a model has to know from elsewhere. ± is half the 95 % interval over learners. Grey italics rest on fewer than ${fewObservations} answers: chance.`;
  const head = ['Training answers', 'Skills', 'Test answers', ...modelNames.map(titleOf)];
  return section('AUC by size of the skill', text, htmlTable(head, bySize.map(sizeRow), true));
}

function sizeRow({ from, to, skills, answers, auc }: SizeBand): Row {
  const range = to === 0 ? 'none' : rangeText(from, Number.isFinite(to) ? to : null);
  // A constant prediction has .5.
  const best = Math.max(0.5, ...auc.map((one) => one.auc ?? 0));
  const areas = auc.map((one) => cellOf(aucText(one), answers, one.auc === best && best > 0.5));
  return [range, grouped(skills), grouped(answers), ...areas];
}

function worstSection({ worstSkills }: Results): string {
  if (worstSkills.length === 0) return '';
  const rows = worstSkills.map(({ skillId, answers, predicted, correct, gap }): Row => {
    const text = `${gap < 0 ? '\u2212' : '+'}${figure(Math.abs(gap), 3)}`;
    const cells = [figure(predicted, 3), figure(correct, 3), text].map((shown) => cellOf(shown, answers));
    return [skillId, grouped(answers), ...cells];
  });
  return section(
    'Skills that the served model predicts worst',
    'Among skills with at least 100 test answers, those where the mean prediction is farthest from what was answered.',
    htmlTable(['Skill', 'Test answers', 'Mean prediction', 'Share right', 'Gap'], rows),
  );
}
