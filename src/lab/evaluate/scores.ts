/** Predicted answers, and figures of each skill, as rows of tables. */
import { listSkillSets, readSkillSet } from '../../domain/base/answer-log.js';
import type { BktParameters } from '../../domain/base/bkt-parameters.js';
import { resolveSkillModel } from '../../domain/catalogue/tenant-model.js';
import { computeSum } from '../../lists.js';
import { skillSeparator } from '../../services/answer-log/rows.js';
import type { AnswerTable, Split } from './answers.js';
import type { predictAll } from './predict.js';
import type { ServedModel } from './replay.js';
import { measureMetrics } from './results.js';

export type ScoredFold = ReturnType<typeof scoreSplit>;
export type SkillFigures = ReturnType<typeof measureSkills>[number];
export type TableRow = readonly (string | number | null)[];

export const scoreSplit = (
  { training: _, ...own }: Split,
  { model, sets }: ServedModel,
  { predictions, mastery }: ReturnType<typeof predictAll>,
) => ({
  ...{ ...own, bkt: predictions.bkt, served: predictions.served, mastery },
  /** Of the served model, by skill. */
  parameters: sets.slice(0, own.test.skills).map(([skillId]) => resolveSkillModel(model, skillId).parameters),
});

export const predictionColumns = {
  ...{ user_id: 'String', skill_id: 'String', item_id: 'String', answer: 'UInt32', correct: 'UInt8' },
  ...{ p_correct: 'Float64', p_correct_bkt: 'Float64', mastery: 'Float64', fold: 'Nullable(UInt16)' },
};

/** Pages of rows, one per learner, in the order of the file. */
export function* listPredictions(table: AnswerTable, scored: readonly ScoredFold[]): Generator<TableRow[]> {
  const skillIds = listSkillSets((scored[0] as ScoredFold).test).map((set) =>
    set.map((skill) => table.skills[skill]).join(skillSeparator),
  );
  for (const { one, learner, start, end } of listLearners(scored))
    yield Array.from({ length: end - start }, (_, i): TableRow => {
      const at = <Value>(column: ArrayLike<Value>): Value => column[start + i] as Value;
      const { test, served, bkt, mastery, fold } = one;
      const ids = [table.learners[learner], skillIds[at(test.skill)], table.items[at(test.item)]] as string[];
      return [...ids, i + 1, at(test.correct), at(served), at(bkt), at(mastery), fold];
    });
}

const listLearners = (scored: readonly ScoredFold[]) =>
  scored
    .flatMap((one) =>
      one.learners.map((learner, i) => {
        const { starts } = one.test;
        return { one, learner, start: starts[i] as number, end: starts[i + 1] as number };
      }),
    )
    .sort((a, b) => a.learner - b.learner);

const parameterNames = ['pInit', 'pLearn', 'pGuess', 'pSlip', 'pForget'] as const;

export const parameterColumns = {
  ...{ skill_id: 'String', p_init: 'Float64', p_learn: 'Float64', p_guess: 'Float64', p_slip: 'Float64' },
  ...{ p_forget: 'Float64', answers: 'UInt32', learners: 'UInt32' },
  ...{ log_loss: 'Nullable(Float64)', auc: 'Nullable(Float64)', fold: 'Nullable(UInt16)' },
};

export const listParameters = (table: AnswerTable, scored: readonly ScoredFold[]): TableRow[] =>
  scored.flatMap((one) =>
    measureSkills([one], table.skills).map(
      ({ skillId, parameters, answers, learners, logLoss, auc }): TableRow => [
        ...[skillId, ...parameters, answers, learners, logLoss, auc, one.fold],
      ],
    ),
  );

/**
 * Figures of the served model. An answer counts for each of its skills. Parameters are means over the folds in the order of
 * the columns.
 */
export function measureSkills(scored: readonly ScoredFold[], skillIds: readonly string[]) {
  const answers = skillIds.map(() => ({
    ...{ correct: [] as number[], predicted: [] as number[], owners: [] as number[] },
  }));
  for (const { one, learner, start, end } of listLearners(scored))
    for (let place = start; place < end; place++)
      for (const skill of readSkillSet(one.test, one.test.skill[place] as number)) {
        const own = answers[skill] as (typeof answers)[0];
        own.correct.push(one.test.correct[place] as number);
        own.predicted.push(one.served[place] as number);
        own.owners.push(learner);
      }
  return answers.map(({ correct, predicted, owners }, skill) => ({
    skillId: skillIds[skill] as string,
    parameters: averageParameters(scored.map(({ parameters }) => parameters[skill] as BktParameters)),
    ...measureSkill(Uint8Array.from(correct), Float64Array.from(predicted), owners),
  }));
}

const averageParameters = (all: readonly BktParameters[]): number[] =>
  parameterNames.map((name) => computeSum(all.map((parameters) => parameters[name])) / all.length);

/** @param owners learner of each answer */
function measureSkill(correct: Uint8Array, predicted: Float64Array, owners: readonly number[]) {
  const answers = correct.length;
  const { auc, logLoss } = measureMetrics(correct, predicted);
  return {
    ...{ answers, learners: new Set(owners).size },
    correct: correct.reduce((sum, value) => sum + value, 0) / answers,
    predicted: predicted.reduce((sum, value) => sum + value, 0) / answers,
    ...{ auc, logLoss: answers === 0 ? null : logLoss },
  };
}
