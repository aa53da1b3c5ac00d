import type { BktParameters } from '../base/bkt-parameters.js';
import { type Answer, logit, memoizeByObject, type Section } from '../base/common.js';
import { findPlacement } from '../catalogue/catalogue.js';
import {
  type ItemModel,
  type ParameterSource,
  resolveSkillModel,
  type SkillModel,
  type TenantModel,
} from '../catalogue/tenant-model.js';
import { type FeatureRow, rowWidth, writeFeatures } from '../prediction/features.js';
import { computeItemDifficulty, type PredictionTerms, predict } from '../prediction/prediction-model.js';
import { emptyRelatedTerms } from '../prediction/related-terms.js';
import {
  computeDifficultyShift,
  computeEffectiveMastery,
  predictCorrect,
  shiftGuessSlip,
} from '../tracing/bkt.js';
import { type AnswerStates, selectTraces } from '../tracing/learner-states.js';
import {
  computeRapidThreshold,
  computeSkillNorm,
  type SkillNorm,
  type SkillTimes,
} from '../tracing/response-times.js';

/** All inputs of an update except the learner's states. Attempt rows store them (ADR 9). */
export interface AnswerConditions {
  readonly parameters: BktParameters;
  readonly version: number;
  readonly source: ParameterSource;
  /** Logits; 0 without a difficulty. */
  readonly difficultyShift: number;
  /** Log-odds of a new learner on this skill and item, for the ability filter. */
  readonly abilityOffset: number;
  /** The item's term in the log-odds of `pCorrect`. */
  readonly itemDifficulty: number;
  readonly rapidSeconds: number;
  readonly norm: SkillNorm;
  readonly pCorrect: number;
  readonly section: Section | null;
  readonly weight: number;
  /** Mean mastery at the end of the previous active day, if this answer closes that day. */
  readonly closedMastery: number | null;
}

type Question = Pick<Answer, 'occurredAt' | 'questionDifficulty'>;

export function computeConditions(
  model: TenantModel,
  skillId: string,
  item: ItemModel | null,
  states: AnswerStates,
  question: Question,
  closedMastery: number | null = null,
): AnswerConditions {
  const skill = resolveSkillModel(model, skillId);
  const { section, weight } = findPlacement(model.catalogue, skillId);
  const shift = computeShift(model, skill, question);
  const terms = selectTerms(model, skill, item);
  const features = computeFeatures(skill, shift, states, question);
  const norms = computeNorms(skill.times);
  return {
    parameters: skill.parameters,
    version: skill.version,
    source: skill.source,
    difficultyShift: shift,
    abilityOffset: model.abilityOffset + skill.abilityOffset + (item?.abilityOffset ?? 0) - shift,
    itemDifficulty: terms.itemDifficulty,
    rapidSeconds: norms.rapidSeconds,
    norm: norms.norm,
    pCorrect: predict(model.prediction, terms, features),
    section,
    weight,
    closedMastery,
  };
}

/** Predicts a stored answer again, with its stored shift and item difficulty. */
export function repeatPrediction(
  model: TenantModel,
  skillId: string,
  item: ItemModel | null,
  states: AnswerStates,
  question: Question,
  { difficultyShift, itemDifficulty }: Pick<AnswerConditions, 'difficultyShift' | 'itemDifficulty'>,
): number {
  const skill = resolveSkillModel(model, skillId);
  const features = computeFeatures(skill, difficultyShift, states, question);
  return predict(model.prediction, { ...selectTerms(model, skill, item), itemDifficulty }, features);
}

export const computeAverageLogOdds = (conditions: AnswerConditions): number =>
  logit(conditions.pCorrect) - conditions.itemDifficulty;

/** Cached: model versions share unchanged `times` objects. */
const computeNorms = memoizeByObject((times: SkillTimes) => ({
  rapidSeconds: computeRapidThreshold(times),
  norm: computeSkillNorm(times),
}));

const featureRow = new Float64Array(rowWidth);

const computeShift = (model: TenantModel, skill: SkillModel, { questionDifficulty }: Question): number =>
  questionDifficulty === null
    ? 0
    : computeDifficultyShift(
        skill.parameters,
        questionDifficulty - skill.difficultyMean,
        model.difficultyScale,
      );

export const selectTerms = (
  { prediction }: TenantModel,
  skill: SkillModel,
  item: ItemModel | null,
): PredictionTerms => ({
  skill: skill.terms,
  item: item === null ? null : item.terms,
  related: skill.related,
  itemsBefore: item === null ? emptyRelatedTerms : item.before,
  itemDifficulty: item === null ? 0 : computeItemDifficulty(item, prediction),
});

/** A shared row: the next call overwrites it. */
export function computeFeatures(
  skill: SkillModel,
  shift: number,
  states: AnswerStates,
  { occurredAt, questionDifficulty }: Question,
): FeatureRow {
  const { learner, skill: state } = states;
  const mastery = computeEffectiveMastery(skill.parameters.pInit, state, occurredAt);
  writeFeatures(featureRow, 0, {
    traces: selectTraces(states),
    keys: states.keys,
    bktProbability: predictCorrect(mastery, shiftGuessSlip(skill.parameters, shift)),
    skillAttempts: state.attempts,
    skillRight: state.correct,
    answerNumber: learner.attempts + 1,
    occurredAt,
    difficulty: questionDifficulty === null ? null : questionDifficulty - skill.difficultyMean,
    bias: learner.trend.bias,
  });
  return featureRow;
}
