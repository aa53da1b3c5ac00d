import Type from 'typebox';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import {
  Amount,
  Change,
  Count,
  classResults,
  Day,
  Difficulty,
  lagField,
  namedFields,
  pageSchema,
  Share,
  Text,
  Time,
} from './shared-schemas.js';
import { Parameters, skillName } from './skills.js';

const skill = {
  ...skillName,
  ...namedFields(Share, 'expected_accuracy', 'expected_low', 'expected_high'),
  ...namedFields(Share, 'mastery', 'mastery_at_last_attempt'),
  ...namedFields(Type.Boolean(), 'mastered', 'plateau_detected'),
  ...namedFields(Count, 'total_attempts', 'correct_attempts'),
  efficiency_index: nullable(Type.Number({ minimum: 0, maximum: 100 })),
  efficiency_reason: nullable(Type.Enum(['too_few_times', 'rapid_answers'])),
  correct_per_minute: nullable(Amount),
  confidence_bias: nullable(Change),
  last_attempt_at: Time,
};

export const LearnerSkill = Type.Object(skill);
export const Mastery = pageSchema('skills', LearnerSkill, {
  user_id: StoredId,
  total_attempts: Type.Integer({
    minimum: 1,
    description: 'All answers of the learner. An answer to a question with several skills counts once.',
  }),
  correct_attempts: Count,
});

export const ClassMastery = classResults(
  Type.Object({
    total_attempts: Type.Integer({
      minimum: 0,
      description: 'All answers of the learner. With `skill_ids`: the sum over these skills.',
    }),
    ...namedFields(Count, 'correct_attempts', 'mastered'),
    last_attempt_at: nullable(Time),
    plateaus: Type.Array(StoredId),
    ...namedFields(
      Type.Record(Type.String(), Share, { description: 'Values by skill_id.' }),
      'expected_accuracy',
      'mastery',
    ),
  }),
);

const ExplanationStep = Type.Object({
  occurred_at: Time,
  learner_seq: Type.Integer({ minimum: 1 }),
  is_correct: Type.Boolean(),
  other_skills: Type.Optional(
    Type.Array(StoredId, {
      description: 'Other skills of the question. Absent if it needs only this skill.',
    }),
  ),
  question_difficulty: Difficulty,
  mastery_before_forgetting: nullable(Share),
  ...namedFields(nullable(Change), 'forgetting', 'evidence', 'learning'),
  ...namedFields(Share, 'mastery_before', 'mastery_after', 'p_correct'),
  parameters_version: Count,
});

const NextMastery = Type.Object({ mastery: Share, change: Change });

export const Explanation = Type.Object({
  parameters: Parameters,
  steps: nullable(Type.Array(ExplanationStep)),
  pending_attempts: nullable(Type.Integer()),
  ...lagField,
  note: Text,
  forgetting_since_last_attempt: Change,
  next: Type.Object({ if_correct: NextMastery, if_wrong: NextMastery }),
  p_correct: Share,
  log_odds: Type.Number(),
  recent_change: Text,
  terms: Type.Array(Type.Object({ name: Type.String(), logits: Type.Number(), text: Type.String() })),
});

export const SkillMastery = Type.Object({
  user_id: StoredId,
  ...skill,
  explanation: Type.Optional(Explanation),
});

const Rate = nullable(Type.Number());
const SeriesDay = Type.Object({
  date: Day,
  mastery: nullable(Share),
  ...namedFields(Count, 'attempts', 'correct'),
});

export const Velocity = Type.Object({
  user_id: StoredId,
  skill_id: nullable(StoredId),
  days: Type.Integer({ minimum: 7, maximum: 365 }),
  ...namedFields(
    Rate,
    'velocity_per_attempt',
    'velocity_per_day',
    'velocity_per_day_low',
    'velocity_per_day_high',
  ),
  ...namedFields(Rate, 'velocity_per_week', 'velocity_7d', 'acceleration'),
  momentum: nullable(Change),
  momentum_label: nullable(Type.Enum(['building', 'steady', 'fading'])),
  plateaus: Type.Array(StoredId),
  ...namedFields(nullable(Amount), 'answers_per_day', 'source_lag_seconds'),
  active_days: nullable(Count),
  ...namedFields(nullable(Share), 'accuracy_7d', 'accuracy_28d'),
  series: nullable(Type.Array(SeriesDay)),
});
