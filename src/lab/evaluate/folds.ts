/** Cross-validation: models trained on the other folds predict each fold. */
import { basename } from 'node:path';
import { computeSum } from '../../lists.js';
import { formatJsonLine, formatNumber } from '../report/format.js';
import { headlineBlock, htmlPage, htmlTable, type Row, section, textTable } from '../report/page.js';
import { formatRunInfo, type RunInfo, renderRunInfo } from '../report/run-info.js';
import { countAnswers } from './answers.js';
import { createCell, formatFigure } from './figures.js';
import { type Evaluation, figuresHead, formatCounts, getModelTitle, splitTexts } from './report.js';
import { measureMetrics } from './results.js';
import type { ScoredFold, SkillFigures } from './scores.js';
import { skillsSection } from './skills-report.js';

type CrossValidation = ReturnType<typeof summarizeFolds>;
type FoldFigures = ReturnType<typeof measureFold>;
type Input = Pick<Evaluation, 'file' | 'split' | 'leftOut'>;

const models = ['served', 'bkt'] as const;
type Model = (typeof models)[number];
const metricNames = ['auc', 'rmse', 'logLoss', 'accuracy', 'ece'] as const;
type Metrics = Readonly<Record<(typeof metricNames)[number], number | null>>;

export function measureFold({ fold, test, predictions: { bkt, served } }: ScoredFold) {
  const measure = (column: Float64Array): Metrics => measureMetrics(test.correct, column);
  return { fold, ...countAnswers(test), models: { bkt: measure(bkt), served: measure(served) } };
}

/** `mean` and `sd` (n - 1) over the folds are null if a fold does not have the metric. */
export function summarizeFolds(input: Input, scored: readonly ScoredFold[]) {
  const folds = scored.map(measureFold);
  const [mean, sd] = [combine(folds, computeMean), combine(folds, computeSd)];
  const rows = computeSum(folds.map((fold) => fold.rows));
  const learners = computeSum(folds.map((fold) => fold.learners));
  return { rows, learners, ...input, folds, mean, sd };
}

const computeMean = (values: readonly number[]): number => computeSum(values) / values.length;

const computeSd = (values: readonly number[]): number => {
  const squares = values.map((value) => (value - computeMean(values)) ** 2);
  return Math.sqrt(computeSum(squares) / (values.length - 1));
};

function combine(folds: readonly FoldFigures[], compute: (values: readonly number[]) => number) {
  const combineModel = (model: Model) => {
    const pairs = metricNames.map((name) => {
      const values = folds.map((fold) => fold.models[model][name]).filter((value) => value !== null);
      return [name, values.length < folds.length ? null : compute(values)];
    });
    return Object.fromEntries(pairs) as Metrics;
  };
  return { bkt: combineModel('bkt'), served: combineModel('served') };
}

function buildHeadline({ folds, mean, sd }: CrossValidation): string[] {
  const area = (model: Model): string =>
    `${formatFigure(mean[model].auc, 3)} (standard deviation ${formatFigure(sd[model].auc, 3)})`;
  return [
    `Over ${folds.length} folds, the served probability predicts held-out answers with a mean AUC of ${area('served')}, plain BKT with ${area('bkt')}.`,
  ];
}

const describeSettings = (found: CrossValidation): Readonly<Record<string, string>> => ({
  File: `${basename(found.file)}, ${formatNumber(found.leftOut)} invalid rows skipped`,
  Folds: `${found.folds.map(({ fold }) => fold).join(', ')}; ${splitTexts[found.split]}`,
  Predicted: formatCounts(found),
});

const buildHead = (model: Model): string[] => [getModelTitle(model), ...figuresHead.slice(1), 'Learners'];

function buildRows({ folds, mean, sd }: CrossValidation, model: Model): Row[] {
  const formatRow = (name: string, metrics: Metrics): string[] => [
    name,
    ...metricNames.map((metric) => formatFigure(metrics[metric])),
  ];
  return [
    ...folds.map(({ fold, rows, learners, models }) => [
      ...formatRow(`Fold ${fold}`, models[model]).map((text, i) => (i === 0 ? text : createCell(text, rows))),
      ...[formatNumber(rows), formatNumber(learners)],
    ]),
    ...Object.entries({ Mean: mean, 'Standard deviation': sd }).map(([name, of]) => [
      ...formatRow(name, of[model]),
      '',
      '',
    ]),
  ];
}

export const serializeFolds = (found: CrossValidation, run: RunInfo): string =>
  formatJsonLine({ ...found, headline: buildHeadline(found), run }, 6);

export const formatFolds = (found: CrossValidation, run: RunInfo): string =>
  [
    ...buildHeadline(found),
    formatRunInfo(run, describeSettings(found)),
    ...models.map((model) => textTable(buildHead(model), buildRows(found, model))),
  ].join('\n\n');

export function renderFolds(found: CrossValidation, skills: readonly SkillFigures[], run: RunInfo): string {
  const text =
    'Models trained on the learners of the other folds predict each fold, from the earlier answers of the learner. The standard deviation over folds divides by n \u2212 1.';
  const tables = models.map((model) => htmlTable(buildHead(model), buildRows(found, model)));
  return htmlPage(`Evaluation of ${basename(found.file)}, all folds`, [
    headlineBlock(buildHeadline(found)),
    renderRunInfo(run, describeSettings(found)),
    section('Metrics by fold', text, ...tables),
    skillsSection(skills),
  ]);
}
