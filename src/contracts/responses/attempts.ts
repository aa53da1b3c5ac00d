import Type from 'typebox';
import { nullable } from '../checked.js';
import { LearningEventResult } from '../events.js';
import { Id } from '../ids.js';
import { LearnerSkill } from './mastery.js';
import { Count, Difficulty, ErrorObject, each, lag, page, Share, Text, Time } from './shared-schemas.js';

const event = { index: Type.Integer({ minimum: 0, description: 'Of the event in the batch' }) };
const accepted = { status: Type.Literal(200), replayed: Type.Optional(Type.Literal(true)) };
const rejected = { status: Type.Integer({ minimum: 400 }), error: ErrorObject };

export const BatchResult = Type.Object({
  ...each(Count, 'accepted', 'rejected'),
  results: Type.Array(
    Type.Union([
      Type.Object({ ...event, ...accepted, data: LearningEventResult }),
      Type.Object({ ...event, ...rejected }),
    ]),
  ),
});

export const Attempt = Type.Object({
  ...each(Count, 'learner_seq', 'parameters_version', 'model_version'),
  skill_id: Id,
  ...each(nullable(Id), 'event_id', 'item_id'),
  ...each(Type.Boolean(), 'is_correct', 'plateau_detected'),
  time_spent_seconds: nullable(Type.Number({ minimum: 0, maximum: 86_400 })),
  confidence_score: nullable(Type.Integer({ minimum: 1, maximum: 5 })),
  question_difficulty: Difficulty,
  ...each(Time, 'occurred_at', 'received_at'),
  ...each(Share, 'mastery_before', 'mastery_after', 'p_correct'),
  recommendation_code: Text,
});

/** `missing`: answers that are no longer stored. */
export const AttemptPage = page('attempts', Attempt, {
  user_id: Id,
  ...each(Count, 'total_attempts', 'missing'),
});

/** The range is null if the answer's number on the skill is unknown. */
export const SkillAnswer = Type.Object({
  ...Attempt.properties,
  expected_accuracy: Share,
  ...each(nullable(Share), 'expected_low', 'expected_high'),
});

export const SkillAnswers = page('answers', SkillAnswer, {
  ...each(Id, 'user_id', 'skill_id'),
  ...each(Count, 'total_attempts', 'pending_attempts'),
  ...lag,
});

export const TakenBack = Type.Object({
  ...each(Id, 'user_id', 'event_id', 'skill_id'),
  total_attempts: Count,
  skill: nullable(LearnerSkill),
});
