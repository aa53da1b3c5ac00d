import { describeContradictions } from './checks-report.js';
import type { EvaluationResults, ModelName } from './results.js';
import type { AnswerChecks } from './validity.js';

const rivals: readonly (readonly [name: ModelName, title: string])[] = [
  ['bkt', 'BKT'],
  ['skill_mean', 'the mean of the skill'],
];

/** The first sentence sums up the evaluation. */
export function buildHeadline({ models }: EvaluationResults, { validity }: AnswerChecks): string[] {
  const aucOf = (name: ModelName): number | null | undefined =>
    models.find((model) => model.name === name)?.auc.auc;
  const margin = models.find(({ name }) => name === 'served')?.auc.margin ?? null;
  const served = aucOf('served') ?? null;
  // Conservative: predictions of the same answers are correlated.
  const isBetter = (name: ModelName): boolean => (served ?? 0) - (aucOf(name) ?? 0) > (margin ?? 1);
  const listRivals = (start: string, better: boolean): string => {
    const listed = rivals.filter(([name]) => isBetter(name) === better);
    const texts = listed.map(([name, title]) => `${title} (${aucOf(name)?.toFixed(3)})`);
    return texts.length === 0 ? '' : `, ${start} ${texts.join(' and ')}`;
  };
  return [
    served === null
      ? 'The AUC is not defined: all held-out answers have the same outcome.'
      : `The served probability predicts held-out answers with AUC ${served.toFixed(3)}${margin === null ? '' : ` ± ${margin.toFixed(3)}`}${listRivals('better than', true)}${listRivals('not clearly better than', false)}.`,
    `Pairs of learner and skill with mastery that contradicts the last 10 answers: ${describeContradictions(validity)}.`,
  ];
}
