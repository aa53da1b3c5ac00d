import type { BktParameters } from '../base/bkt-parameters.js';
import { getCalendar } from '../base/calendar.js';
import {
  type Answer,
  logit,
  mapNonEmpty,
  memoizeByObject,
  type NonEmpty,
  type Section,
} from '../base/common.js';
import { findQuestionPlacement } from '../catalogue/catalogue.js';
import {
  type ItemModel,
  type ParameterSource,
  type QuestionModel,
  type QuestionTerms,
  resolveQuestionModel,
  type TenantModel,
} from '../catalogue/tenant-model.js';
import { type FeatureRow, rowWidth, writeFeatures } from '../prediction/features.js';
import { computeItemDifficulty, type PredictionTerms, predict } from '../prediction/prediction-model.js';
import { emptyRelatedTerms } from '../prediction/related-terms.js';
import {
  averageChance,
  computeEffectiveMastery,
  computeQuestionShift,
  predictSkills,
  type SkillMastery,
} from '../tracing/bkt.js';
import { type AnswerStates, type SkillState, selectTraces } from '../tracing/learner-states.js';
import {
  computeRapidThreshold,
  computeSkillNorm,
  type SkillNorm,
  type SkillTimes,
} from '../tracing/response-times.js';
import { combineSkills } from '../tracing/traces.js';

export interface SkillConditions {
  readonly parameters: BktParameters;
  readonly version: number;
  readonly source: ParameterSource;
}

/** All inputs of an update except the learner's states. Attempt rows store them (ADR 9). */
export interface AnswerConditions {
  /** IANA name. */
  readonly timeZone: string;
  /** Day of the answer in `timeZone`, since 1970. */
  readonly localDay: number;
  /** In the order of the question's skills. */
  readonly skills: NonEmpty<SkillConditions>;
  /** Logits; 0 without a difficulty. */
  readonly difficultyShift: number;
  /** Log-odds of a new learner on these skills and this item, for the ability filter. */
  readonly abilityOffset: number;
  /** The item's term in the log-odds of `pCorrect`. */
  readonly itemDifficulty: number;
  readonly rapidSeconds: number;
  readonly norm: SkillNorm;
  readonly pCorrect: number;
  /** Null: half in each section. */
  readonly section: Section | null;
  /** Of the first skill. */
  readonly weight: number;
  /** Mean mastery at the end of the previous active day, if this answer closes that day. */
  readonly closedMastery: number | null;
}

type Question = Pick<Answer, 'occurredAt' | 'questionDifficulty'>;

export function computeConditions(
  model: TenantModel,
  skillIds: NonEmpty<string>,
  item: ItemModel | null,
  states: AnswerStates,
  question: Question,
  closedMastery: number | null = null,
): AnswerConditions {
  const asked = resolveQuestionModel(model, skillIds);
  const { section, weight } = findQuestionPlacement(model.catalogue, skillIds);
  const shift = computeShift(model, asked, question);
  const terms = selectTerms(model, asked.combined, item);
  const features = computeFeatures(asked, shift, states, question);
  const norms = computeNorms(asked.combined.times);
  const { timeZone } = states.learner;
  return {
    timeZone,
    localDay: getCalendar(timeZone).toDay(question.occurredAt),
    skills: asked.skills,
    difficultyShift: shift,
    abilityOffset: model.abilityOffset + asked.combined.abilityOffset + (item?.abilityOffset ?? 0) - shift,
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
  skillIds: NonEmpty<string>,
  item: ItemModel | null,
  states: AnswerStates,
  question: Question,
  { difficultyShift, itemDifficulty }: Pick<AnswerConditions, 'difficultyShift' | 'itemDifficulty'>,
): number {
  const asked = resolveQuestionModel(model, skillIds);
  const features = computeFeatures(asked, difficultyShift, states, question);
  return predict(model.prediction, { ...selectTerms(model, asked.combined, item), itemDifficulty }, features);
}

export const computeAverageLogOdds = (conditions: AnswerConditions): number =>
  logit(conditions.pCorrect) - conditions.itemDifficulty;

/** Cached: model versions share unchanged `times` objects. */
const computeNorms = memoizeByObject((times: SkillTimes) => ({
  rapidSeconds: computeRapidThreshold(times),
  norm: computeSkillNorm(times),
}));

const featureRow = new Float64Array(rowWidth);

const computeShift = (
  { difficultyScale }: TenantModel,
  { skills, combined }: QuestionModel,
  { questionDifficulty }: Question,
): number =>
  questionDifficulty === null
    ? 0
    : computeQuestionShift(skills, questionDifficulty - combined.difficultyMean, difficultyScale);

export const selectTerms = (
  { prediction }: TenantModel,
  { terms, related }: QuestionTerms,
  item: ItemModel | null,
): PredictionTerms => ({
  skill: terms,
  item: item === null ? null : item.terms,
  related,
  itemsBefore: item === null ? emptyRelatedTerms : item.before,
  itemDifficulty: item === null ? 0 : computeItemDifficulty(item, prediction),
});

/** A shared row: the next call overwrites it. */
export function computeFeatures(
  { skills: models, combined }: QuestionModel,
  shift: number,
  states: AnswerStates,
  { occurredAt, questionDifficulty }: Question,
): FeatureRow {
  const { learner, keys } = states;
  const masteries = computeMasteries(models, states, occurredAt);
  writeFeatures(featureRow, 0, {
    traces: selectTraces(states),
    skills: combineSkills(states.skills),
    keys,
    bktProbability: averageChance(predictSkills(masteries, shift), masteries.length),
    answerNumber: learner.attempts + 1,
    occurredAt,
    difficulty: questionDifficulty === null ? null : questionDifficulty - combined.difficultyMean,
    bias: learner.trend.bias,
  });
  return featureRow;
}

interface TracedSkills {
  readonly skills: NonEmpty<Pick<SkillConditions, 'parameters'>>;
}

/** After forgetting. @param now Unix milliseconds */
export const computeMasteries = (
  conditions: TracedSkills['skills'],
  { skills }: Pick<AnswerStates, 'skills'>,
  now: number,
): NonEmpty<SkillMastery> =>
  mapNonEmpty(conditions, ({ parameters }, i) => ({
    parameters,
    mastery: computeEffectiveMastery(parameters.pInit, skills[i] as SkillState, now),
  }));
