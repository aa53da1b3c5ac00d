/** Skills as the catalogue and the model have them. */
import Type, { type TProperties } from 'typebox';
import { sections } from '../../domain/base/types.js';
import { Id } from '../ids.js';
import { Count, nullable, Share, Time } from './parts.js';

export const Parameters = Type.Object({
  p_init: Share,
  p_learn: Share,
  p_guess: Share,
  p_slip: Share,
  source: Type.Enum(['default', 'fitted', 'manual']),
  version: Count,
  fitted_at: nullable(Time),
});

const skill = {
  skill_id: Id,
  name: nullable(Type.String()),
  section: nullable(Type.Enum([...sections])),
  weight: Type.Number({ exclusiveMinimum: 0 }),
  parameters: Parameters,
  origin: Type.Enum(['defaults', 'tenant_prior', 'fit', 'manual']),
  learners: Count,
  answers: Count,
  rapid_threshold_seconds: Type.Number({ minimum: 0 }),
  typical_seconds: nullable(Type.Number({ minimum: 0 })),
  updated_at: nullable(Time),
} satisfies TProperties;

export const Skill = Type.Object({ ...skill, model_version: Count });

export const SkillPage = Type.Object({
  skills: Type.Array(Type.Object(skill)),
  next_cursor: nullable(Type.String()),
  model_version: Count,
});

export const DeletedSkill = Type.Object({ skill_id: Id, answers: Count });
