import { formatNumber } from '../report/format.js';
import type { AucEstimate, EvaluationResults } from './results.js';

export const formatFigure = (value: number | null, digits = 4): string => value?.toFixed(digits) ?? 'none';

export const formatAuc = ({ auc, margin }: AucEstimate): string =>
  margin === null ? formatFigure(auc) : `${formatFigure(auc)} ± ${formatFigure(margin)}`;

/** A sentence; empty without such answers. */
export function formatSeveralSkills({ severalSkills: found }: EvaluationResults): string[] {
  if (found === null) return [];
  const figures = `AUC ${formatAuc(found.auc)}, log loss ${formatFigure(found.metrics.logLoss)}, ECE ${formatFigure(found.metrics.ece)}`;
  return [
    `Served model, ${formatNumber(found.answers)} answers to questions with several skills: ${figures}`,
  ];
}
