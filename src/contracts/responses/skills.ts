import Type from 'typebox';
import { sections } from '../../domain/base/common.js';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { Amount, Count, namedFields, pageSchema, Share, Text, Time } from './shared-schemas.js';

export const Parameters = Type.Object({
  ...namedFields(Share, 'p_init', 'p_learn', 'p_guess', 'p_slip', 'p_forget'),
  source: Type.Enum(['default', 'fitted', 'manual']),
  version: Count,
  fitted_at: nullable(Time),
});

export const skillName = { skill_id: StoredId, section: nullable(Type.Enum([...sections])) };

const catalogued = {
  ...skillName,
  name: Text,
  weight: Type.Number({ exclusiveMinimum: 0 }),
  parameters: Parameters,
  origin: Type.Enum(['defaults', 'tenant_prior', 'fit', 'manual']),
  ...namedFields(Count, 'learners', 'answers'),
  rapid_threshold_seconds: Amount,
  typical_seconds: nullable(Amount),
  updated_at: nullable(Time),
};

export const ListedSkill = Type.Object(catalogued);
export const Skill = Type.Object({ ...catalogued, model_version: Count });
export const SkillPage = pageSchema('skills', ListedSkill, { model_version: Count });
export const DeletedSkill = Type.Object({ skill_id: StoredId, answers: Count });
