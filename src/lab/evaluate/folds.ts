/** Cross-validation: models trained on the other folds predict each fold. */
import { basename } from 'node:path';
import { average } from '../../domain/base/common.js';
import { computeSum } from '../../lists.js';
import { formatNumber } from '../report/format.js';
import type { LabReport } from '../report/lab-report.js';
import { htmlTable, type Row, section, textTable } from '../report/page.js';
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
  Object.fromEntries(metricNames.map((name) => [name, of(name)])) as Metrics;
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

/** @param listSkills called only for the page */
export function reportFolds(found: CrossValidation, listSkills: () => readonly SkillFigures[]): LabReport {
  const [tables, folds] = [buildTables(found), found.folds.map(({ fold }) => fold).join(', ')];
  const text =
    'Models trained on the learners of the other folds predict each fold, from the earlier answers of the learner. The standard deviation over folds divides by n \u2212 1.';
  return {
    title: `Evaluation of ${basename(found.file)}, all folds`,
    headline: [describeAreas(found)],
    settings: {
      File: describeFile(found),
      Folds: `${folds}; ${splitTexts[found.split]}`,
      Predicted: formatCounts(found),
    },
    json: found,
    text: tables.map((table) => textTable(...table)),
    sections: () => [
      section('Metrics by fold', text, ...tables.map((table) => htmlTable(...table))),
      skillsSection(listSkills()),
    ],
  };
}

function describeAreas({ folds, mean, sd }: CrossValidation): string {
  const area = (model: Model): string =>
    `${formatFigure(mean[model].auc, 3)} (standard deviation ${formatFigure(sd[model].auc, 3)})`;
  return `Over ${folds.length} folds, the served probability predicts held-out answers with a mean AUC of ${area('served')}, plain BKT with ${area('bkt')}.`;
}

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
