/** A learner's stored answers. */
import Type from 'typebox';
import { Id } from '../ids.js';
import { Count, nullable, Share, Time } from './parts.js';

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
