import { onceFor } from '../base/common.js';
import { type BktParameters, defaultParameters, difficultyModel } from '../base/params.js';
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

/** The built-in defaults, the shrunk mean of the tenant's fitted skills, a fit of the skill, or a person. */
export type ParameterSource = 'default' | 'prior' | 'fitted' | 'manual';

export interface SkillParameters {
  readonly parameters: BktParameters;
  readonly source: ParameterSource;
  /** Of the model that brought them, 0 for the defaults; set by hand: revision of the catalogue. */
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
  /** What the fit rested on; 0 where there was none. */
  readonly learners: number;
  readonly answers: number;
  /** Mean of the supplied question difficulties, which are centred by it. */
  readonly difficultyMean: number;
  readonly times: SkillTimes;
  /** Terms of the served probability: intercept and slopes (prediction/model.ts). */
  readonly terms: readonly number[];
  /** Terms with other skills, by their keys. */
  readonly related: Related;
  /** Part of the offset of the ability filter: how much easier the skill is than the mean, logits. */
  readonly abilityOffset: number;
}

/** What is known of one item: its answers so far, and what the last fit found; zeros where it found nothing. */
export interface ItemModel extends ItemCounts {
  readonly terms: readonly number[];
  /** Terms with items that were answered before it, by their keys. */
  readonly before: Related;
  /** Part of the offset of the ability filter: how much easier the item is than its skill, logits. */
  readonly abilityOffset: number;
}

export interface TenantModel {
  readonly version: number;
  /** RFC 3339; null before the first fit. */
  readonly fittedAt: string | null;
  /** Mean of the tenant's fitted skills, for skills without a fit of their own; null below five fitted skills. */
  readonly prior: BktParameters | null;
  /** k of the logit shift by question difficulty. */
  readonly difficultyScale: number;
  readonly skills: ReadonlyMap<string, SkillModel>;
  readonly prediction: PredictionModel;
  /** Log-odds of a right answer of a new learner on a mean skill, for the ability filter. */
  readonly abilityOffset: number;
  readonly accuracy: AccuracyModel;
  /** What the tenant itself says of its skills; no part of the version, and empty in a fit. */
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

/** What a skill is served with: its own model, or the tenant's prior, or the defaults. */
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
