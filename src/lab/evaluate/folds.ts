/** Cross-validation: models trained on the other folds predict each fold. */
import { basename } from 'node:path';
import { average } from '../../domain/base/common.js';
import { computeSum } from '../../lists.js';
import { formatJsonLine, formatNumber } from '../report/format.js';
import { headlineBlock, htmlPage, htmlTable, type Row, section, textTable } from '../report/page.js';
import { formatRunInfo, type RunInfo, renderRunInfo } from '../report/run-info.js';
import { countAnswers } from './answers.js';
import { createCell, formatFigure } from './figures.js';
import {
  describeFile,
  type Evaluation,
  figuresHead,
  formatCounts,
  getModelTitle,
  splitTexts,
} from './report.js';
import { type Metrics, measureMetrics, metricNames } from './results.js';
import type { ScoredFold, SkillFigures } from './scores.js';
import { skillsSection } from './skills-report.js';

type CrossValidation = ReturnType<typeof summarizeFolds>;

const models = ['served', 'bkt'] as const;
type Model = (typeof models)[number];

const mapMetrics = (of: (name: keyof Metrics) => number) =>
  Object.fromEntries(metricNames.map((name) => [name, of(name)])) as unknown as Metrics;
const mapModels = (of: (model: Model) => Metrics) => ({ bkt: of('bkt'), served: of('served') });

export const measureFold = ({ fold, test, predictions }: ScoredFold) => ({
  ...{ fold, ...countAnswers(test) },
  models: mapModels((model) => measureMetrics(test.correct, predictions[model])),
});

/** `mean` and `sd` (n - 1) over the folds are NaN if a fold does not have the metric. */
export function summarizeFolds(
  input: Pick<Evaluation, 'file' | 'split' | 'leftOut'>,
  scored: readonly ScoredFold[],
) {
  const folds = scored.map(measureFold);
  const total = (name: 'rows' | 'learners'): number => computeSum(folds.map((fold) => fold[name]));
  const combine = (compute: (values: readonly number[]) => number) =>
    mapModels((model) =>
      mapMetrics((name) => compute(folds.map(({ models }) => models[model][name] ?? Number.NaN))),
    );
  const counts = { rows: total('rows'), learners: total('learners') };
  return { ...counts, ...input, folds, mean: combine(computeMean), sd: combine(computeSd) };
}

const computeMean = (values: readonly number[]): number => average(values, Number);

function computeSd(values: readonly number[]): number {
  const mean = computeMean(values);
  return Math.sqrt(computeSum(values.map((value) => (value - mean) ** 2)) / (values.length - 1));
}

function buildHeadline({ folds, mean, sd }: CrossValidation): string {
  const area = (model: Model): string =>
    `${formatFigure(mean[model].auc, 3)} (standard deviation ${formatFigure(sd[model].auc, 3)})`;
  return `Over ${folds.length} folds, the served probability predicts held-out answers with a mean AUC of ${area('served')}, plain BKT with ${area('bkt')}.`;
}

const describeSettings = (found: CrossValidation): Readonly<Record<string, string>> => ({
  File: describeFile(found),
  Folds: `${found.folds.map(({ fold }) => fold).join(', ')}; ${splitTexts[found.split]}`,
  Predicted: formatCounts(found),
});

/** One table per model. */
const buildTables = ({ folds, mean, sd }: CrossValidation) =>
  models.map((model): [head: string[], rows: Row[]] => {
    const cells = (of: typeof mean, answers = Number.POSITIVE_INFINITY) =>
      metricNames.map((name) => createCell(formatFigure(of[model][name]), answers));
    const rows = folds.map(({ fold, models, rows, learners }) => [
      ...[`Fold ${fold}`, ...cells(models, rows), formatNumber(rows), formatNumber(learners)],
    ]);
    const totals = Object.entries({ Mean: mean, 'Standard deviation': sd });
    rows.push(...totals.map(([name, of]) => [name, ...cells(of), '', '']));
    return [[getModelTitle(model), ...figuresHead.slice(1), 'Learners'], rows];
  });

export const serializeFolds = (found: CrossValidation, run: RunInfo): string =>
  formatJsonLine({ ...found, headline: [buildHeadline(found)], run }, 6);

export const formatFolds = (found: CrossValidation, run: RunInfo): string =>
  [
    buildHeadline(found),
    formatRunInfo(run, describeSettings(found)),
    ...buildTables(found).map((table) => textTable(...table)),
  ].join('\n\n');

export function renderFolds(found: CrossValidation, skills: readonly SkillFigures[], run: RunInfo): string {
  const text =
    'Models trained on the learners of the other folds predict each fold, from the earlier answers of the learner. The standard deviation over folds divides by n \u2212 1.';
  return htmlPage(`Evaluation of ${basename(found.file)}, all folds`, [
    headlineBlock([buildHeadline(found)]),
    renderRunInfo(run, describeSettings(found)),
    section('Metrics by fold', text, ...buildTables(found).map((table) => htmlTable(...table))),
    skillsSection(skills),
  ]);
}
