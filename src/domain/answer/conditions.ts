import type { BktParameters } from '../base/bkt-parameters.js';
import { type Answer, logit, onceFor, type Section } from '../base/common.js';
import { placementOf } from '../catalogue/catalogue.js';
import {
  type ItemModel,
  type ParameterSource,
  type SkillModel,
  skillModelOf,
  type TenantModel,
} from '../catalogue/tenant-model.js';
import { type FeatureRow, rowWidth, writeFeatures } from '../prediction/features.js';
import { itemDifficulty, predict, type Terms } from '../prediction/model.js';
import { unrelated } from '../prediction/related.js';
import { difficultyShift, effectiveMastery, itemGuessSlip, predictCorrect } from '../tracing/bkt.js';
import { rapidThreshold, type SkillNorm, type SkillTimes, skillNorm } from '../tracing/pace.js';
import { type AnswerStates, tracesOf } from '../tracing/states.js';

/** All inputs of an update except the learner's states. Attempt rows store them (ADR 9). */
export interface Conditions {
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

export function conditionsFor(
  model: TenantModel,
  skillId: string,
  item: ItemModel | null,
  states: AnswerStates,
  question: Question,
  closedMastery: number | null = null,
): Conditions {
  const skill = skillModelOf(model, skillId);
  const { section, weight } = placementOf(model.catalogue, skillId);
  const shift = shiftOf(model, skill, question);
  const terms = termsOf(model, skill, item);
  const features = featuresOf(skill, shift, states, question);
  const norms = normsOf(skill.times);
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
export function predictAgain(
  model: TenantModel,
  skillId: string,
  item: ItemModel | null,
  states: AnswerStates,
  question: Question,
  { difficultyShift, itemDifficulty }: Pick<Conditions, 'difficultyShift' | 'itemDifficulty'>,
): number {
  const skill = skillModelOf(model, skillId);
  const features = featuresOf(skill, difficultyShift, states, question);
  return predict(model.prediction, { ...termsOf(model, skill, item), itemDifficulty }, features);
}

export const averageLogOdds = (of: Conditions): number => logit(of.pCorrect) - of.itemDifficulty;

/** Cached: model versions share unchanged `times` objects. */
const normsOf = onceFor((times: SkillTimes) => ({
  rapidSeconds: rapidThreshold(times),
  norm: skillNorm(times),
}));

const row = new Float64Array(rowWidth);

const shiftOf = (model: TenantModel, skill: SkillModel, { questionDifficulty }: Question): number =>
  questionDifficulty === null
    ? 0
    : difficultyShift(skill.parameters, questionDifficulty - skill.difficultyMean, model.difficultyScale);

export const termsOf = ({ prediction }: TenantModel, skill: SkillModel, item: ItemModel | null): Terms => ({
  skill: skill.terms,
  item: item === null ? null : item.terms,
  related: skill.related,
  itemsBefore: item === null ? unrelated : item.before,
  itemDifficulty: item === null ? 0 : itemDifficulty(item, prediction),
});

/** A shared row: the next call overwrites it. */
export function featuresOf(
  skill: SkillModel,
  shift: number,
  states: AnswerStates,
  { occurredAt, questionDifficulty }: Question,
): FeatureRow {
  const { learner, skill: state } = states;
  const mastery = effectiveMastery(skill.parameters.pInit, state, occurredAt);
  writeFeatures(row, 0, {
    traces: tracesOf(states),
    asked: states.asked,
    bktProbability: predictCorrect(mastery, itemGuessSlip(skill.parameters, shift)),
    skillAttempts: state.attempts,
    skillRight: state.correct,
    place: learner.attempts + 1,
    at: occurredAt,
    difficulty: questionDifficulty === null ? null : questionDifficulty - skill.difficultyMean,
    bias: learner.trend.bias,
  });
  return row;
}
