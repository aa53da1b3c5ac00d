import { type BktParameters, defaultParameters, difficultyModel } from '../base/bkt-parameters.js';
import { onceFor } from '../base/common.js';
import { type AccuracyModel, startAccuracy } from '../prediction/accuracy-model.js';
import {
  firstLogOdds,
  type ItemCounts,
  type PredictionModel,
  startModel,
  unseenTerms,
} from '../prediction/model.js';
import { type Related, unrelated } from '../prediction/related.js';
import { noTimes, type SkillTimes } from '../tracing/pace.js';
import { type Catalogue, emptyCatalogue } from './catalogue.js';

/** default: built in; prior: mean of the fitted skills; fitted: for this skill; manual: catalogue. */
export type ParameterSource = 'default' | 'prior' | 'fitted' | 'manual';

export interface SkillParameters {
  readonly parameters: BktParameters;
  readonly source: ParameterSource;
  /** Model version (0: defaults), or catalogue revision of manual parameters. */
  readonly version: number;
  readonly fittedAt: string | null;
}

export const defaultSkillParameters: SkillParameters = {
  parameters: defaultParameters,
  source: 'default',
  version: 0,
  fittedAt: null,
};

export interface SkillModel extends SkillParameters {
  readonly learners: number;
  readonly answers: number;
  /** Mean of the supplied question difficulties. */
  readonly difficultyMean: number;
  readonly times: SkillTimes;
  readonly terms: readonly number[];
  readonly related: Related;
  /** Logits relative to the mean skill, for the ability filter. */
  readonly abilityOffset: number;
}

/** Counters, and terms of the last fit (zeros without one). */
export interface ItemModel extends ItemCounts {
  readonly terms: readonly number[];
  readonly before: Related;
  /** Logits relative to its skill, for the ability filter. */
  readonly abilityOffset: number;
}

export interface TenantModel {
  readonly version: number;
  /** RFC 3339; null before the first fit. */
  readonly fittedAt: string | null;
  /** Mean of the fitted skills; null with fewer than five. */
  readonly prior: BktParameters | null;
  /** Factor k of the difficulty shift. */
  readonly difficultyScale: number;
  readonly skills: ReadonlyMap<string, SkillModel>;
  readonly prediction: PredictionModel;
  /** Log-odds of a new learner on the mean skill, for the ability filter. */
  readonly abilityOffset: number;
  readonly accuracy: AccuracyModel;
  /** Stored separately from the model; empty in a fit. */
  readonly catalogue: Catalogue;
}

export const unfittedModel: TenantModel = {
  version: 0,
  fittedAt: null,
  prior: null,
  difficultyScale: difficultyModel.scale,
  skills: new Map(),
  prediction: startModel,
  abilityOffset: firstLogOdds(defaultParameters),
  accuracy: startAccuracy,
  catalogue: emptyCatalogue,
};

/** Parameters come from the catalogue, else the skill's fit, the tenant's prior or the defaults. */
export function skillModelOf(model: TenantModel, skillId: string): SkillModel {
  const skill = model.skills.get(skillId) ?? unknownSkill(model);
  const set = model.catalogue.entries.get(skillId);
  if (set === undefined || set.parameters === null) return skill;
  return { ...skill, parameters: set.parameters, source: 'manual', version: set.revision, fittedAt: null };
}

const unknownSkill = onceFor(({ prior, version, fittedAt, prediction }: TenantModel): SkillModel => {
  const own: SkillParameters =
    prior === null ? defaultSkillParameters : { parameters: prior, source: 'prior', version, fittedAt };
  return {
    ...own,
    learners: 0,
    answers: 0,
    difficultyMean: 0,
    times: noTimes,
    terms: unseenTerms(prediction),
    related: unrelated,
    abilityOffset: 0,
  };
});
