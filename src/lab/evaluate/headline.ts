import { describeContradictions } from './checks-report.js';
import type { AucEstimate, EvaluationResults } from './results.js';
import type { AnswerChecks } from './validity.js';

/** The first sentence sums up the evaluation. */
export function buildHeadline({ models }: EvaluationResults, { validity }: AnswerChecks): string[] {
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
