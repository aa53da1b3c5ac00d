import { formatNumber } from '../report/format.js';
import { type Cell, minObservations } from '../report/page.js';
import type { AucEstimate, EvaluationResults } from './results.js';
import type { Interval } from './validity.js';

export const formatFigure = (value: number | null, digits = 4): string =>
  value === null || Number.isNaN(value) ? 'none' : value.toFixed(digits);

export const formatAuc = ({ auc, margin }: AucEstimate): string =>
  margin === null ? formatFigure(auc) : `${formatFigure(auc)} ± ${formatFigure(margin)}`;

/** With a space before; '' for null. */
export const formatInterval = (interval: Interval): string =>
  interval === null ? '' : ` [${interval.map((bound) => formatFigure(bound)).join('\u00a0')}]`;

export const createCell = (text: string, answers: number, look?: Cell['look']): Cell => ({
  text,
  look: answers < minObservations ? 'few' : look,
});

/** A sentence; empty without such answers. */
export function formatSeveralSkills({ severalSkills: found }: EvaluationResults): string[] {
  if (found === null) return [];
  const figures = `AUC ${formatAuc(found.auc)}, log loss ${formatFigure(found.metrics.logLoss)}, ECE ${formatFigure(found.metrics.ece)}`;
  return [
    `Served model, ${formatNumber(found.answers)} answers to questions with several skills: ${figures}`,
  ];
}
