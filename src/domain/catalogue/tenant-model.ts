import { type BktParameters, defaultParameters, difficultyConstants } from '../base/bkt-parameters.js';
import { average, mapNonEmpty, memoizeByObject, type NonEmpty } from '../base/common.js';
import { type AccuracyModel, initialAccuracyModel } from '../prediction/accuracy-model.js';
import {
  buildUnseenTerms,
  computeFirstLogOdds,
  type ItemCounts,
  initialPredictionModel,
  type PredictionModel,
} from '../prediction/prediction-model.js';
import { emptyRelatedTerms, type RelatedTerms } from '../prediction/related-terms.js';
import { combineIds } from '../tracing/course.js';
import { emptyTimes, type SkillTimes } from '../tracing/response-times.js';
import { type Catalogue, emptyCatalogue } from './catalogue.js';

/** prior: mean of the fitted skills; manual: from the catalogue. */
export type ParameterSource = 'default' | 'prior' | 'fitted' | 'manual';

export interface SkillParameters {
  readonly parameters: BktParameters;
  readonly source: ParameterSource;
  /** Model version (0: defaults), or catalogue revision if manual. */
  readonly version: number;
  readonly fittedAt: string | null;
}

export const defaultSkillParameters: SkillParameters = {
  parameters: defaultParameters,
  source: 'default',
  version: 0,
  fittedAt: null,
};

/** Of a skill, or of a combination of skills. */
export interface QuestionTerms {
  readonly difficultyMean: number;
  readonly times: SkillTimes;
  readonly terms: readonly number[];
  readonly related: RelatedTerms;
  /** Logits relative to the mean skill, for the ability filter. */
  readonly abilityOffset: number;
}

export interface SkillModel extends SkillParameters, QuestionTerms {
  readonly learners: number;
  readonly answers: number;
}

export interface QuestionModel {
  readonly skills: NonEmpty<SkillModel>;
  /** Of the only skill, or of the combination. */
  readonly combined: QuestionTerms;
}

export interface ItemModel extends ItemCounts {
  readonly terms: readonly number[];
  readonly before: RelatedTerms;
  /** Logits relative to the item's skill, for the ability filter. */
  readonly abilityOffset: number;
}

export interface TenantModel {
  readonly version: number;
  /** RFC 3339; null before the first fit. */
  readonly fittedAt: string | null;
  /** Mean of at least five fitted skills, else null. */
  readonly prior: BktParameters | null;
  readonly difficultyScale: number;
  readonly skills: ReadonlyMap<string, SkillModel>;
  /** Combinations of several skills, by `combineIds`. */
  readonly combinations: ReadonlyMap<string, QuestionTerms>;
  readonly prediction: PredictionModel;
  /** Log-odds of a new learner on the mean skill, for the ability filter. */
  readonly abilityOffset: number;
  readonly accuracy: AccuracyModel;
  /** Achieved growth of the tenant's learners, relative to the projection. */
  readonly growth: number;
  /** Added when the model is used; not part of its version. */
  readonly catalogue: Catalogue;
}

export const unfittedModel: TenantModel = {
  version: 0,
  fittedAt: null,
  prior: null,
  difficultyScale: difficultyConstants.scale,
  skills: new Map(),
  combinations: new Map(),
  prediction: initialPredictionModel,
  abilityOffset: computeFirstLogOdds(defaultParameters),
  accuracy: initialAccuracyModel,
  growth: 1,
  catalogue: emptyCatalogue,
};

/** Takes parameters from the catalogue, else the skill's fit, else the prior, else the defaults. */
export function resolveSkillModel(model: TenantModel, skillId: string): SkillModel {
  const skill = model.skills.get(skillId) ?? buildUnknownSkill(model);
  const set = model.catalogue.entries.get(skillId);
  if (set === undefined || set.parameters === null) return skill;
  return { ...skill, parameters: set.parameters, source: 'manual', version: set.revision, fittedAt: null };
}

const buildUnknownSkill = memoizeByObject(
  ({ prior, version, fittedAt, prediction }: TenantModel): SkillModel => {
    const skillParameters: SkillParameters =
      prior === null ? defaultSkillParameters : { parameters: prior, source: 'prior', version, fittedAt };
    return {
      ...skillParameters,
      learners: 0,
      answers: 0,
      difficultyMean: 0,
      times: emptyTimes,
      terms: buildUnseenTerms(prediction),
      related: emptyRelatedTerms,
      abilityOffset: 0,
    };
  },
);

export function resolveQuestionModel(model: TenantModel, skillIds: NonEmpty<string>): QuestionModel {
  const skills = mapNonEmpty(skillIds, (skillId) => resolveSkillModel(model, skillId));
  if (skills.length === 1) return { skills, combined: skills[0] };
  return { skills, combined: model.combinations.get(combineIds(skillIds)) ?? averageQuestionTerms(skills) };
}

/** For a combination without a fit. The time norms are those of the skill with the most timed answers. */
function averageQuestionTerms(skills: NonEmpty<SkillModel>): QuestionTerms {
  // Skills without a fit share their terms.
  if (skills.every(({ terms }) => terms === skills[0].terms)) return skills[0];
  return {
    difficultyMean: average(skills, ({ difficultyMean }) => difficultyMean),
    times: skills.reduce((most, { times }) => (times.answers > most.answers ? times : most), emptyTimes),
    terms: skills[0].terms.map((_, i) => average(skills, ({ terms }) => terms[i] as number)),
    related: emptyRelatedTerms,
    abilityOffset: average(skills, ({ abilityOffset }) => abilityOffset),
  };
}
