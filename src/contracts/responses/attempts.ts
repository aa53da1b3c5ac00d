import Type from 'typebox';
import { LearningEventResult } from '../answers/events.js';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { LearnerSkill } from './mastery.js';
import {
  Count,
  Difficulty,
  ErrorObject,
  lagField,
  namedFields,
  pageSchema,
  Share,
  Text,
  Time,
} from './shared-schemas.js';

const event = {
  index: Type.Integer({ minimum: 0, description: 'Position of the event in the batch, from 0.' }),
};
const accepted = { status: Type.Literal(200), replayed: Type.Optional(Type.Literal(true)) };
const rejected = { status: Type.Integer({ minimum: 400 }), error: ErrorObject };

export const BatchResult = Type.Object({
  ...namedFields(Count, 'accepted', 'rejected'),
  results: Type.Array(
    Type.Union([
      Type.Object({ ...event, ...accepted, data: LearningEventResult }),
      Type.Object({ ...event, ...rejected }),
    ]),
  ),
});

export const Attempt = Type.Object({
  ...namedFields(Count, 'learner_seq', 'parameters_version', 'model_version'),
  skill_id: StoredId,
  skill_ids: Type.Array(StoredId, { description: 'All skills of the question, in the order of the answer.' }),
  ...namedFields(nullable(StoredId), 'event_id', 'item_id'),
  ...namedFields(Type.Boolean(), 'is_correct', 'plateau_detected'),
  time_spent_seconds: nullable(Type.Number({ minimum: 0, maximum: 86_400 })),
  confidence_score: nullable(Type.Integer({ minimum: 1, maximum: 5 })),
  question_difficulty: Difficulty,
  ...namedFields(Time, 'occurred_at', 'received_at'),
  ...namedFields(Share, 'mastery_before', 'mastery_after', 'p_correct'),
  recommendation_code: Text,
});

/** `missing`: answers that are no longer stored. */
export const AttemptPage = pageSchema('attempts', Attempt, {
  user_id: StoredId,
  ...namedFields(Count, 'total_attempts', 'missing'),
});

/** The range is null if the answer's number on the skill is unknown. */
export const SkillAnswer = Type.Object({
  ...Attempt.properties,
  expected_accuracy: Share,
  ...namedFields(nullable(Share), 'expected_low', 'expected_high'),
});

export const SkillAnswerPage = pageSchema('answers', SkillAnswer, {
  ...namedFields(StoredId, 'user_id', 'skill_id'),
  ...namedFields(Count, 'total_attempts', 'pending_attempts'),
  ...lagField,
});

const remainingSkillFields = {
  skill_id: StoredId,
  total_attempts: Count,
  skill: nullable(LearnerSkill),
};

export const RetractedAttempt = Type.Object({
  ...namedFields(StoredId, 'user_id', 'event_id'),
  ...remainingSkillFields,
  skills: Type.Optional(
    Type.Array(Type.Object(remainingSkillFields), {
      description: 'If the answer was on several skills: each of them. The other fields are of the first.',
    }),
  ),
});
