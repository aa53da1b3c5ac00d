import { basename } from 'node:path';
import { reliabilityBins } from '../../domain/base/prediction-metrics.js';
import { type Chart, chartFigure } from '../report/chart.js';
import { formatNumber, formatRange } from '../report/format.js';
import type { LabReport } from '../report/lab-report.js';
import { type ChartPoint, computeDomain, logAxis, shareAxis } from '../report/marks.js';
import { buildPartRows, partHead } from '../report/model-parts.js';
import {
  chartGrid,
  htmlTable,
  minObservations,
  type Row,
  section,
  textTable,
  textTag,
} from '../report/page.js';
import { figureResamples } from './bootstrap.js';
import {
  binChart,
  describeContradictions,
  formatMonotone,
  formatValidity,
  masteryChart,
  monotoneSection,
  validitySection,
} from './checks-report.js';
import { createCell, formatAuc, formatFigure, formatInterval, formatSeveralSkills } from './figures.js';
import type { MonotoneCheck } from './probe.js';
import {
  type AucEstimate,
  type CurvePoint,
  type EvaluationResults,
  type Metrics,
  type ModelName,
  type ModelResult,
  metricNames,
  modelNames,
  type SizeBand,
} from './results.js';
import type { SkillFigures } from './scores.js';
import { skillsSection } from './skills-report.js';
import type { TrainedModels } from './train.js';
import type { AnswerChecks, Interval } from './validity.js';

type TrainingFigures = TrainedModels['figures'];

export interface Evaluation extends TrainingFigures, AnswerChecks {
  readonly file: string;
  readonly fold: number;
  readonly split: keyof typeof splitTexts;
  readonly test: { readonly rows: number; readonly learners: number };
  readonly train: Evaluation['test'];
  /** Rejected rows. */
  readonly leftOut: number;
  readonly predict: { readonly seconds: number };
  readonly monotone: MonotoneCheck;
  readonly results: EvaluationResults;
}

export const splitTexts = {
  fold: 'folds of the file',
  hash: 'folds by a hash of user_id',
  mixed: 'folds of the file, or by a hash of user_id if missing',
} as const;

/** @param listSkills called only for the page */
export const reportEvaluation = (
  evaluation: Evaluation,
  listSkills: () => readonly SkillFigures[],
): LabReport => ({
  title: `Evaluation of ${basename(evaluation.file)}, fold ${evaluation.fold}`,
  headline: buildHeadline(evaluation.results, evaluation),
  settings: describeSettings(evaluation),
  json: buildJson(evaluation),
  text: buildText(evaluation),
  sections: () => [
    figuresSection(evaluation),
    validitySection(evaluation),
    monotoneSection(evaluation.monotone),
    fitSection(evaluation),
    reliabilitySection(evaluation),
    curvesSection(evaluation.results),
    sizesSection(evaluation.results),
    skillsSection(listSkills()),
  ],
});

/** The first sentence sums up the evaluation. */
function buildHeadline({ models }: EvaluationResults, { validity }: AnswerChecks): string[] {
  const ofModels = Object.fromEntries(models.map(({ name, auc }) => [name, auc]));
  const { bkt, skill_mean: mean, served } = ofModels as Record<string, AucEstimate>;
  // Conservative: predictions of the same answers are correlated.
  const isBetter = (rival = served): boolean =>
    (served?.auc ?? 0) - (rival?.auc ?? 0) > (served?.margin ?? 1);
  const compare = (title: string, rival = served): string =>
    `${isBetter(rival) ? '' : 'not clearly '}better than ${title} (${rival?.auc?.toFixed(3) ?? 'none'})`;
  const area = `${served?.auc?.toFixed(3) ?? 'none'} ± ${served?.margin?.toFixed(3) ?? 'unknown'}`;
  return [
    `The served probability predicts held-out answers with AUC ${area}, ${compare('BKT', bkt)} and ${compare('the mean of the skill', mean)}.`,
    `Pairs of learner and skill with mastery that contradicts the last 10 answers: ${describeContradictions(validity)}.`,
  ];
}

function buildJson({ test, results, fit, file, fold, split, train, leftOut, ...found }: Evaluation): object {
  const byModel = (of: (model: ModelResult) => object | number | null) =>
    Object.fromEntries(results.models.map((model) => [model.name, of(model)]));
  const several = results.severalSkills;
  return {
    ...{ ...test, models: byModel(({ metrics }) => metrics) },
    ...{ fit, file, fold, split, train, leftOut, ...found },
    reliability: byModel(({ reliability }) => reliability),
    aucMargins: byModel(({ auc }) => auc.margin),
    intervals: byModel(({ intervals }) => intervals),
    severalSkills: several && { answers: several.answers, ...several.metrics },
  };
}

function buildText(evaluation: Evaluation): string[] {
  const bins = evaluation.results.models.find(({ name }) => name === 'served')?.reliability ?? [];
  const binTable = textTable(['Predicted', 'Answers', 'Mean prediction', 'Correct', 'Gap'], bins.map(binRow));
  return [
    formatFit(evaluation),
    [textTable(figuresHead, figureRows(evaluation)), ...formatSeveralSkills(evaluation.results)].join('\n'),
    formatMonotone(evaluation.monotone),
    formatValidity(evaluation),
    `Parts of the served model, by cross-fit on the training learners:\n${textTable(partHead, buildPartRows(evaluation.parts))}`,
    `Reliability of the served model:\n${binTable}`,
  ];
}

const formatThreads = (threads: number): string => `${threads} ${threads === 1 ? 'thread' : 'threads'}`;

const formatFit = ({ fit, servedFit, predict }: Evaluation): string =>
  `Fit: BKT ${fit.seconds.toFixed(2)} s (${formatNumber(fit.iterations)} EM iterations), all models ${servedFit.seconds.toFixed(2)} s, ${formatThreads(fit.threads)}, peak memory ${formatNumber(Math.round(servedFit.peakBytes / 1e6))} MB;\n${formatNumber(servedFit.skillPairs)} pairs of skills and ${formatNumber(servedFit.itemPairs)} pairs of items have terms. Prediction and probes: ${predict.seconds.toFixed(2)} s`;

function binRow({ low, high, answers, predicted, correct }: ModelResult['reliability'][number]): Row {
  const figures = predicted === null || correct === null ? [] : [predicted, correct, predicted - correct];
  const cells = figures.map((value) => createCell(formatFigure(value), answers));
  return [`${low.toFixed(3)} to ${high.toFixed(3)}`, formatNumber(answers), ...cells];
}

export const formatCounts = ({ rows, learners }: Evaluation['test']): string =>
  `${formatNumber(rows)} answers of ${formatNumber(learners)} learners`;

export const describeFile = ({ file, leftOut }: Pick<Evaluation, 'file' | 'leftOut'>): string =>
  `${basename(file)}, ${formatNumber(leftOut)} rows left out`;

export const figuresHead = ['Model', 'AUC', 'RMSE', 'Log loss', 'Accuracy', 'ECE', 'Answers'];

function figureRows({ test, results }: Evaluation, formatName = (name: ModelName): string => name): Row[] {
  // The overall mean is always calibrated, so it never counts as best.
  const rivals = results.models.filter(({ name }) => name !== 'overall_mean');
  const findBest = (metric: keyof Metrics): number | null => {
    const values = rivals.map(({ metrics }) => metrics[metric] ?? 0);
    return metric === 'auc' || metric === 'accuracy' ? Math.max(...values) : Math.min(...values);
  };
  return results.models.map((model) => {
    const intervals: Partial<Record<keyof Metrics, Interval>> = model.intervals;
    const cells = metricNames.map((metric) => {
      const isBest = rivals.includes(model) && model.metrics[metric] === findBest(metric);
      const text = `${formatFigure(model.metrics[metric])}${formatInterval(intervals[metric] ?? null)}`;
      return createCell(text, test.rows, isBest ? 'best' : undefined);
    });
    return [formatName(model.name), ...cells, formatNumber(test.rows)];
  });
}

const modelStyles: Readonly<Record<ModelName, { readonly title: string; readonly color: string }>> = {
  overall_mean: { title: 'Overall mean', color: 'd' },
  skill_mean: { title: 'Skill mean', color: 'c' },
  bkt: { title: 'Plain BKT', color: 'b' },
  served: { title: 'Served model', color: 'a' },
};
export const getModelTitle = (name: ModelName): string => modelStyles[name].title;

function figuresSection(evaluation: Evaluation): string {
  const text = `${formatCounts(evaluation.test)}, each predicted from the learner’s earlier answers by models trained on the ${formatCounts(evaluation.train)} of the other folds. Higher is better for AUC and accuracy (threshold .5). Lower is better for RMSE, log loss (nats) and expected calibration error (ECE). Brackets are 95 % intervals from ${figureResamples} bootstrap samples of learners.`;
  return section(
    'Metrics',
    text,
    htmlTable(figuresHead, figureRows(evaluation, getModelTitle)),
    ...formatSeveralSkills(evaluation.results).map((line) => textTag('p', {}, line)),
  );
}

const describeSettings = (evaluation: Evaluation): Readonly<Record<string, string>> => ({
  File: describeFile(evaluation),
  Fold: `${evaluation.fold}, ${splitTexts[evaluation.split]}`,
  Predicted: formatCounts(evaluation.test),
  'Trained on': formatCounts(evaluation.train),
  Fit: `${formatThreads(evaluation.fit.threads)}, ${formatNumber(evaluation.fit.observations)} answers`,
});

function fitSection(evaluation: Evaluation): string {
  const text =
    'Optional parts of the served model. A part is published only if it improves the predictions for training learners that the fit did not use (cross-fit). Each part is tested together with the earlier parts that were accepted.';
  return section(
    'Parts of the served model',
    text,
    htmlTable(partHead, buildPartRows(evaluation.parts)),
    textTag('p', {}, `${formatFit(evaluation)}.`),
  );
}

function reliabilitySection({ results, validity }: Evaluation): string {
  const text = `Answers in ${reliabilityBins} bins by prediction, with the share of correct answers and the mean prediction of each bin. On the dashed line, the prediction is calibrated; below it, it is too high. The size of a dot and the bars show the number of answers; hollow dots have fewer than ${minObservations}. The last chart groups the same answers in 10 bins by mastery before the answer. Mastery is not a prediction, so its dots can be off the line.`;
  const x = 'predicted probability of a correct answer';
  const charts = results.models.toReversed().map(({ name, metrics, reliability }) => {
    const { title, color } = modelStyles[name];
    return binChart(`${title}: ECE ${formatFigure(metrics.ece)}`, x, { [title]: color }, reliability);
  });
  return section('Reliability', text, chartGrid([...charts, masteryChart(validity)]));
}

function curvesSection({ byAttempt, byAnswer }: EvaluationResults): string {
  const text = `Share of correct answers and mean predictions by amount of practice. Learners who stop early are missing from later points, so compare the predictions with the answers and do not read the curves as learning gains. Hollow dots have fewer than ${minObservations} answers.`;
  const domainOf = (points: readonly CurvePoint[]) =>
    [1 - halfBar, (points.at(-1)?.to ?? 1) + halfBar] as const;
  const attempts = { domain: domainOf(byAttempt), label: 'attempt number on the skill' };
  const answers = logAxis('answer number of the learner', domainOf(byAnswer));
  const charts = [
    curveChart('By attempt number on the skill', byAttempt, attempts),
    curveChart('By answer number of the learner', byAnswer, answers),
  ];
  return section('Learning curves', text, chartGrid(charts));
}

/** Below .5: bars have gaps, and the first one starts above 0 on the logarithmic axis. */
const halfBar = 0.4;
const observedSeries = 'Observed';
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
    y: shareAxis('share of correct answers', computeDomain(shares, [0, 1], 0.2)),
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
  const text = `AUC of the test answers, grouped by the number of training answers of their skill. ± is half of the 95 % confidence interval over learners. Figures in grey italics have fewer than ${minObservations} answers and are not reliable.`;
  const head = ['Training answers', 'Skills', 'Test answers', ...modelNames.map(getModelTitle)];
  return section('AUC by training answers of the skill', text, htmlTable(head, bySize.map(sizeRow), true));
}

function sizeRow({ from, to, skills, answers, auc }: SizeBand): Row {
  const range = to === 0 ? 'none' : formatRange(from, Number.isFinite(to) ? to : null);
  // A constant prediction has .5.
  const best = Math.max(0.5, ...auc.map((one) => one.auc ?? 0));
  const areas = auc.map((one) =>
    createCell(formatAuc(one), answers, one.auc === best && best > 0.5 ? 'best' : undefined),
  );
  return [range, formatNumber(skills), formatNumber(answers), ...areas];
}
