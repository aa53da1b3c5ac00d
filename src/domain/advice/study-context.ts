/** What advice on a learner's skills looks at, and what it is. */

import type { PerSection } from '../base/types.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { SkillView } from '../learner/skill-view.js';
import type { SectionMeasure } from '../score/section-measure.js';
import type { StudyTexts } from './advice-texts.js';
import type { StateCode } from './study-codes.js';

export interface SkillsContext {
  /** By skill id, so that ties are the same in whatever order the skills were read. */
  readonly views: readonly SkillView[];
  readonly measures: PerSection<SectionMeasure>;
  readonly model: TenantModel;
  /** Unix milliseconds. */
  readonly now: number;
}

export type SkillCode = StateCode | 'EXPLORE';

export interface SkillAdvice {
  readonly code: SkillCode;
  readonly skillId: string;
  /** Points per hour. */
  readonly gain: number;
  /** In words, at most 200 characters; only for advice that is given. */
  text(texts: StudyTexts): string;
}

/** What people call a skill. */
export const nameOf = ({ model }: SkillsContext, skillId: string): string =>
  model.catalogue.entries.get(skillId)?.name ?? skillId;
