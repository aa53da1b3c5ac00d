/** Answers about learners and skills. */
import Type, { type TProperties } from 'typebox';
import { sections } from '../../domain/base/types.js';
import { LearningEventResult } from '../events.js';
import { TargetScore } from '../goals.js';
import { Id } from '../ids.js';
import { Change, Count, Day, ErrorObject, nullable, Share, Time } from './parts.js';

const eventIndex = Type.Integer({ minimum: 0, description: 'Of the event in the batch' });

const Accepted = Type.Object({
  index: eventIndex,
  status: Type.Literal(200),
  data: LearningEventResult,
  replayed: Type.Optional(Type.Literal(true)),
});
const Rejected = Type.Object({
  index: eventIndex,
  status: Type.Integer({ minimum: 400 }),
  error: ErrorObject,
});

export const BatchResult = Type.Object({
  accepted: Count,
  rejected: Count,
  results: Type.Array(Type.Union([Accepted, Rejected])),
});

const Parameters = Type.Object({
  p_init: Share,
  p_learn: Share,
  p_guess: Share,
  p_slip: Share,
  source: Type.Enum(['default', 'fitted', 'manual']),
  version: Count,
  fitted_at: nullable(Time),
});

const catalogued = {
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

export const Skill = Type.Object({ ...catalogued, model_version: Count });

export const SkillPage = Type.Object({
  skills: Type.Array(Type.Object(catalogued)),
  next_cursor: nullable(Type.String()),
  model_version: Count,
});

export const DeletedSkill = Type.Object({ skill_id: Id, answers: Count });

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

const Rate = nullable(Type.Number());

const SeriesDay = Type.Object({ date: Day, mastery: nullable(Share), attempts: Count, correct: Count });

export const Velocity = Type.Object({
  user_id: Id,
  skill_id: nullable(Id),
  days: Type.Integer({ minimum: 7, maximum: 365 }),
  velocity_per_attempt: Rate,
  velocity_per_day: Rate,
  velocity_per_day_low: Rate,
  velocity_per_day_high: Rate,
  velocity_per_week: Rate,
  velocity_7d: Rate,
  acceleration: Rate,
  momentum: nullable(Change),
  momentum_label: nullable(Type.Enum(['building', 'steady', 'fading'])),
  plateaus: Type.Array(Id),
  answers_per_day: nullable(Type.Number({ minimum: 0 })),
  active_days: nullable(Count),
  accuracy_7d: nullable(Share),
  accuracy_28d: nullable(Share),
  series: nullable(Type.Array(SeriesDay)),
  source_lag_seconds: nullable(Type.Number({ minimum: 0 })),
});

export const Goal = Type.Object({
  user_id: Id,
  target_score: TargetScore,
  target_date: nullable(Day),
  updated_at: Time,
});

export const DeletedGoal = Type.Object({
  user_id: Id,
  target_score: Type.Null(),
  target_date: Type.Null(),
  updated_at: Time,
});

const Attempt = Type.Object({
  learner_seq: Count,
  event_id: nullable(Id),
  skill_id: Id,
  item_id: nullable(Id),
  is_correct: Type.Boolean(),
  time_spent_seconds: nullable(Type.Number({ minimum: 0, maximum: 86_400 })),
  confidence_score: nullable(Type.Integer({ minimum: 1, maximum: 5 })),
  question_difficulty: nullable(Type.Number({ minimum: -3, maximum: 3 })),
  occurred_at: Time,
  received_at: Time,
  mastery_before: Share,
  mastery_after: Share,
  p_correct: Share,
  plateau_detected: Type.Boolean(),
  recommendation_code: nullable(Type.String()),
  parameters_version: Count,
  model_version: Count,
});

/** `missing`: answers between the first and the last number of the page that are stored nowhere any more. */
export const AttemptPage = Type.Object({
  user_id: Id,
  total_attempts: Count,
  attempts: Type.Array(Attempt),
  missing: Count,
  next_cursor: nullable(Type.String()),
});

export const ExportLines = Type.String({
  contentMediaType: 'application/x-ndjson',
  description:
    'A JSON object with a type on each line; the last one has the type end where the export is complete',
});

export const BegunErasure = Type.Object({
  erasure_id: Type.String(),
  status_url: Type.String({ description: 'Path of GET /api/v1/erasures/{erasure_id}' }),
});

const Place = Type.Object({
  place: Type.String({ description: 'Table in ClickHouse' }),
  before: Count,
  after: nullable(Count),
});

export const Erasure = Type.Object({
  erasure_id: Type.String(),
  status: Type.Enum(['pending', 'running', 'done'], {
    description:
      'pending: answers of before wait for ClickHouse; running: they are deleted, the rest is to be proven',
  }),
  requested_at: Time,
  done_at: nullable(Time),
  removed: Type.Object(
    { records: Count, items: Count },
    { description: 'What the request itself took out of Redis: fields of the learner, remembered items' },
  ),
  places: Type.Array(Place, { description: 'Rows, of daily sums the answers that they count' }),
  proof: nullable(
    Type.Object({
      query: Type.String({ description: 'Its parameters are those below and user_id, which is not kept' }),
      parameters: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()])),
    }),
  ),
});
