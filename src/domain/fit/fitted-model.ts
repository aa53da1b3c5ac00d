import { listSkillSets } from '../base/answer-log.js';
import { mapNonEmpty, type NonEmpty, round4 } from '../base/common.js';
import { predictionConstants } from '../base/prediction-constants.js';
import { hashKey } from '../base/text-hash.js';
import { resolveSkillModel, type TenantModel } from '../catalogue/tenant-model.js';
import { skillTermCount } from '../prediction/prediction-model.js';
import { skillPairWidth } from '../prediction/related-terms.js';
import { combineIds } from '../tracing/course.js';
import type { SkillTimes } from '../tracing/response-times.js';
import { averageDifficulty } from './bkt/trace-log.js';
import type { FitInput } from './fit-stages.js';
import type { AbilityOffsets } from './prediction/ability-offsets.js';
import type { FittedPrediction } from './prediction/fitted-prediction.js';
import { mapRelatedKeys, readRelatedTerms } from './prediction/pair-tables.js';

/** Ids of each skill set. */
export const listSetIds = ({ log, skillIds }: Pick<FitInput, 'log' | 'skillIds'>): NonEmpty<string>[] =>
  listSkillSets(log).map((set) => mapNonEmpty(set, (skill) => skillIds[skill] as string));

/** Adds the terms of skills, and of combinations with enough answers. @param times by skill set */
export function addTerms(
  input: Pick<FitInput, 'log' | 'skillIds'>,
  base: TenantModel,
  times: readonly SkillTimes[],
  { model, skillTerms, pairs }: FittedPrediction,
  offsets: AbilityOffsets,
): TenantModel {
  const sets = listSetIds(input);
  const keys = sets.map((ids) => hashKey(combineIds(ids)));
  const answers = new Uint32Array(sets.length);
  for (const set of input.log.skill) answers[set] = (answers[set] as number) + 1;
  const readTerms = (set: number) => {
    const terms = Array.from(skillTerms.subarray(set * skillTermCount, (set + 1) * skillTermCount), round4);
    // Set numbers start at 1. Four decimals save two thirds of the text.
    const related = mapRelatedKeys(
      readRelatedTerms(pairs, set),
      skillPairWidth,
      (number) => keys[number - 1] as number,
    );
    const short = { keys: related.keys, terms: Array.from(related.terms, round4) };
    return { terms, related: short, abilityOffset: offsets.skills[set] ?? 0 };
  };
  const skills = new Map(base.skills);
  const combinations = new Map(base.combinations);
  for (const [set, ids] of sets.entries()) {
    const own = mapNonEmpty(ids, (skillId) => resolveSkillModel(base, skillId));
    if (own.length === 1) skills.set(ids[0], { ...own[0], ...readTerms(set) });
    else if ((answers[set] as number) >= predictionConstants.fit.combinationAnswers)
      combinations.set(combineIds(ids), {
        difficultyMean: averageDifficulty(own),
        times: times[set] as SkillTimes,
        ...readTerms(set),
      });
  }
  return { ...base, skills, combinations, prediction: model, abilityOffset: offsets.mean };
}
