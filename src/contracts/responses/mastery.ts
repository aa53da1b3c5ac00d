/** What is known of a learner's skills. */
import Type, { type TProperties } from 'typebox';
import { sections } from '../../domain/base/types.js';
import { Id } from '../ids.js';
import { Change, Count, nullable, Share, Time } from './parts.js';
import { Parameters } from './skills.js';

const skill = {
  skill_id: Id,
  section: nullable(Type.Enum([...sections])),
  mastery: Share,
  mastery_at_last_attempt: Share,
  mastered: Type.Boolean(),
  total_attempts: Count,
  correct_attempts: Count,
  plateau_detected: Type.Boolean(),
  efficiency_index: nullable(Type.Number({ minimum: 0, maximum: 100 })),
  correct_per_minute: nullable(Type.Number({ minimum: 0 })),
  confidence_bias: nullable(Change),
  last_attempt_at: Time,
} satisfies TProperties;

export const Mastery = Type.Object({
  user_id: Id,
  skills: Type.Array(Type.Object(skill)),
  next_cursor: nullable(Type.String()),
});

/** What is known of the skill without the answer; null where no answer on it is left. */
export const TakenBack = Type.Object({
  user_id: Id,
  event_id: Id,
  skill_id: Id,
  total_attempts: Count,
  skill: nullable(Type.Object(skill)),
});

const Step = Type.Object({
  occurred_at: Time,
  learner_seq: Type.Integer({ minimum: 1 }),
  is_correct: Type.Boolean(),
  question_difficulty: nullable(Type.Number({ minimum: -3, maximum: 3 })),
  mastery_before_forgetting: nullable(Share),
  forgetting: nullable(Change),
  mastery_before: Share,
  evidence: nullable(Change),
  learning: nullable(Change),
  mastery_after: Share,
  p_correct: Share,
  parameters_version: Count,
});

const Next = Type.Object({ mastery: Share, change: Change });

const Explanation = Type.Object({
  parameters: Parameters,
  steps: nullable(Type.Array(Step)),
  pending_attempts: nullable(Type.Integer()),
  source_lag_seconds: nullable(Type.Number({ minimum: 0 })),
  note: nullable(Type.String()),
  forgetting_since_last_attempt: Change,
  next: Type.Object({ if_correct: Next, if_wrong: Next }),
  p_correct: Share,
  log_odds: Type.Number(),
  terms: Type.Array(Type.Object({ name: Type.String(), logits: Type.Number() })),
});

export const SkillMastery = Type.Object({
  user_id: Id,
  ...skill,
  explanation: Type.Optional(Explanation),
});
