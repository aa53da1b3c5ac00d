/** Predicted answers, and figures of each skill, as rows of tables. */
import { listSkillSets, readSkillSet } from '../../domain/base/answer-log.js';
import type { BktParameters } from '../../domain/base/bkt-parameters.js';
import { average } from '../../domain/base/common.js';
import { resolveSkillModel } from '../../domain/catalogue/tenant-model.js';
import { distinct, indices } from '../../lists.js';
import { skillSeparator } from '../../services/answer-log/rows.js';
import type { AnswerTable, Split } from './answers.js';
import { predictAll, type Visit } from './predict.js';
import { measureMetrics } from './results.js';
import type { TrainedModels } from './train.js';

export type ScoredFold = ReturnType<typeof scoreSplit>;
export type SkillFigures = ReturnType<typeof measureSkills>[number];

/** @param visit called before each test answer changes the history */
export function scoreSplit(split: Split, models: TrainedModels['models'], visit?: Visit) {
  const { training: _, ...own } = split;
  const { model, sets } = models.served;
  const skillIds = sets.slice(0, own.test.skills).map(([skillId]) => skillId);
  /** Of the served model, by skill. */
  const parameters = skillIds.map((skillId) => resolveSkillModel(model, skillId).parameters);
  return { ...own, ...predictAll(split, models, visit), parameters };
}

function* listPredictions(table: AnswerTable, scored: readonly ScoredFold[]): Generator<object[]> {
  const skillIds = listSkillSets((scored[0] as ScoredFold).test).map((set) =>
    set.map((skill) => table.skills[skill]).join(skillSeparator),
  );
  for (const { one, learner, start, end } of listLearners(scored))
    yield indices(end - start).map((i) => {
      const { test, predictions, mastery, fold } = one;
      const place = start + i;
      const [set, item] = [test.skill[place] as number, test.item[place] as number];
      return {
        ...{ user_id: table.learners[learner], skill_id: skillIds[set], item_id: table.items[item] },
        ...{ answer: i + 1, correct: test.correct[place], p_correct: predictions.served[place] },
        ...{ p_correct_bkt: predictions.bkt[place], mastery: mastery[place], fold },
      };
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

const nameParameters = ({ pInit, pLearn, pGuess, pSlip, pForget }: BktParameters) => ({
  ...{ p_init: pInit, p_learn: pLearn, p_guess: pGuess, p_slip: pSlip, p_forget: pForget },
});

/** A page per fold. */
const listParameters = ({ skills }: AnswerTable, scored: readonly ScoredFold[]): object[][] =>
  scored.map((one) =>
    measureSkills([one], skills).map(({ skillId, parameters, answers, learners, logLoss, auc }) => ({
      ...{ skill_id: skillId, ...parameters, answers, learners, log_loss: logLoss, auc, fold: one.fold },
    })),
  );

/** By name of the option. `columns`: names and types, as the engine reads them. */
export const scoreTables = {
  predictions: {
    columns: `user_id String, skill_id String, item_id String, answer UInt32, correct UInt8, p_correct Float64,
      p_correct_bkt Float64, mastery Float64, fold Nullable(UInt16)`,
    listPages: listPredictions,
  },
  parameters: {
    columns: `skill_id String, p_init Float64, p_learn Float64, p_guess Float64, p_slip Float64, p_forget Float64,
      answers UInt32, learners UInt32, log_loss Nullable(Float64), auc Nullable(Float64), fold Nullable(UInt16)`,
    listPages: listParameters,
  },
} as const;

/** Figures of the served model. An answer counts for each of its skills. Several folds have no parameters. */
export function measureSkills(scored: readonly ScoredFold[], skillIds: readonly string[]) {
  const answers = skillIds.map(() => ({
    ...{ correct: [] as number[], predicted: [] as number[], owners: [] as number[] },
  }));
  for (const { one, learner, start, end } of listLearners(scored))
    for (let place = start; place < end; place++)
      for (const skill of readSkillSet(one.test, one.test.skill[place] as number)) {
        const own = answers[skill] as (typeof answers)[0];
        own.correct.push(one.test.correct[place] as number);
        own.predicted.push(one.predictions.served[place] as number);
        own.owners.push(learner);
      }
  const [first, another] = scored;
  return answers.map(({ correct, predicted, owners }, skill) => {
    const { auc, logLoss } = measureMetrics(Uint8Array.from(correct), Float64Array.from(predicted));
    return {
      skillId: skillIds[skill] as string,
      parameters: another ? null : nameParameters(first?.parameters[skill] as BktParameters),
      ...{ answers: correct.length, learners: distinct(owners).length },
      ...{ correct: average(correct, Number), predicted: average(predicted, Number) },
      ...{ auc, logLoss: correct.length === 0 ? null : logLoss },
    };
  });
}
