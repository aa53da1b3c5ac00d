import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { reasonCodes } from '../../domain/advice/next-items.js';
import { sections } from '../../domain/base/common.js';
import { activityModel, goalModel, nextItemsModel } from '../../domain/base/params.js';
import { type ErrorCode, errorTable } from '../../errors.js';
import { nullable } from '../checked.js';
import { LearningEventResult } from '../events.js';
import { TargetScore } from '../goals.js';
import { Id } from '../ids.js';

export const each = <Schema extends TSchema, Name extends string>(schema: Schema, ...names: Name[]) =>
  Object.fromEntries(names.map((name) => [name, schema])) as { [Field in Name]: Schema };

export const Count = Type.Integer({ minimum: 0 });
export const Amount = Type.Number({ minimum: 0 });
export const Share = Type.Number({ minimum: 0, maximum: 1 });
export const Change = Type.Number({ minimum: -1, maximum: 1 });
export const Time = Type.String({ format: 'date-time', description: 'RFC 3339, UTC' });
export const Day = Type.String({ format: 'date', description: 'YYYY-MM-DD, a UTC day' });

export const lag = { source_lag_seconds: nullable(Amount) };

export const page = (name: string, item: TSchema, more: TProperties = {}) =>
  Type.Object({ ...more, [name]: Type.Array(item), next_cursor: nullable(Type.String()) });

export const ErrorObject = Type.Object(
  {
    code: Type.Enum(Object.keys(errorTable) as ErrorCode[]),
    message: Type.String({ minLength: 1 }),
    details: Type.Optional(Type.Array(Type.Object(each(Type.String(), 'path', 'message')))),
  },
  { description: 'What is wrong, and where' },
);

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

export const Parameters = Type.Object({
  ...each(Share, 'p_init', 'p_learn', 'p_guess', 'p_slip', 'p_forget'),
  source: Type.Enum(['default', 'fitted', 'manual']),
  version: Count,
  fitted_at: nullable(Time),
});

const Text = nullable(Type.String());
const skillName = { skill_id: Id, section: nullable(Type.Enum([...sections])) };

const catalogued = {
  ...skillName,
  name: Text,
  weight: Type.Number({ exclusiveMinimum: 0 }),
  parameters: Parameters,
  origin: Type.Enum(['defaults', 'tenant_prior', 'fit', 'manual']),
  ...each(Count, 'learners', 'answers'),
  rapid_threshold_seconds: Amount,
  typical_seconds: nullable(Amount),
  updated_at: nullable(Time),
};

export const ListedSkill = Type.Object(catalogued);
export const Skill = Type.Object({ ...catalogued, model_version: Count });
export const SkillPage = page('skills', ListedSkill, { model_version: Count });
export const DeletedSkill = Type.Object({ skill_id: Id, answers: Count });

const skill = {
  ...skillName,
  ...each(Share, 'expected_accuracy', 'expected_low', 'expected_high'),
  ...each(Share, 'mastery', 'mastery_at_last_attempt'),
  ...each(Type.Boolean(), 'mastered', 'plateau_detected'),
  ...each(Count, 'total_attempts', 'correct_attempts'),
  efficiency_index: nullable(Type.Number({ minimum: 0, maximum: 100 })),
  efficiency_reason: nullable(Type.Enum(['too_few_times', 'rapid_answers'])),
  correct_per_minute: nullable(Amount),
  confidence_bias: nullable(Change),
  last_attempt_at: Time,
};

export const LearnerSkill = Type.Object(skill);

export const Mastery = page('skills', LearnerSkill, { user_id: Id });

export const TakenBack = Type.Object({
  ...each(Id, 'user_id', 'event_id', 'skill_id'),
  total_attempts: Count,
  /** Without the retracted answer; null if the skill has no other answer. */
  skill: nullable(LearnerSkill),
});

const Difficulty = nullable(Type.Number({ minimum: -3, maximum: 3 }));

const Step = Type.Object({
  occurred_at: Time,
  learner_seq: Type.Integer({ minimum: 1 }),
  is_correct: Type.Boolean(),
  question_difficulty: Difficulty,
  mastery_before_forgetting: nullable(Share),
  ...each(nullable(Change), 'forgetting', 'evidence', 'learning'),
  ...each(Share, 'mastery_before', 'mastery_after', 'p_correct'),
  parameters_version: Count,
});

const Next = Type.Object({ mastery: Share, change: Change });

export const Explanation = Type.Object({
  parameters: Parameters,
  steps: nullable(Type.Array(Step)),
  pending_attempts: nullable(Type.Integer()),
  ...lag,
  note: Text,
  forgetting_since_last_attempt: Change,
  next: Type.Object({ if_correct: Next, if_wrong: Next }),
  p_correct: Share,
  log_odds: Type.Number(),
  recent_change: Text,
  terms: Type.Array(Type.Object({ name: Type.String(), logits: Type.Number(), text: Type.String() })),
});

export const SkillMastery = Type.Object({
  user_id: Id,
  ...skill,
  explanation: Type.Optional(Explanation),
});

const Rate = nullable(Type.Number());
const SeriesDay = Type.Object({ date: Day, mastery: nullable(Share), ...each(Count, 'attempts', 'correct') });

export const Velocity = Type.Object({
  user_id: Id,
  skill_id: nullable(Id),
  days: Type.Integer({ minimum: 7, maximum: 365 }),
  ...each(Rate, 'velocity_per_attempt', 'velocity_per_day', 'velocity_per_day_low', 'velocity_per_day_high'),
  ...each(Rate, 'velocity_per_week', 'velocity_7d', 'acceleration'),
  momentum: nullable(Change),
  momentum_label: nullable(Type.Enum(['building', 'steady', 'fading'])),
  plateaus: Type.Array(Id),
  ...each(nullable(Amount), 'answers_per_day', 'source_lag_seconds'),
  active_days: nullable(Count),
  ...each(nullable(Share), 'accuracy_7d', 'accuracy_28d'),
  series: nullable(Type.Array(SeriesDay)),
});

export const ListedLearner = Type.Object({
  user_id: Id,
  ...each(Count, 'total_attempts', 'correct_attempts', 'skills'),
  last_day: Day,
});
export type ListedLearner = Static<typeof ListedLearner>;
export const LearnerPage = page('learners', ListedLearner, lag);

const goal = { user_id: Id, updated_at: Time };
export const Goal = Type.Object({ ...goal, target_score: TargetScore, target_date: nullable(Day) });
export const DeletedGoal = Type.Object({ ...goal, ...each(Type.Null(), 'target_score', 'target_date') });

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

/** `missing`: answers within the page's range that are no longer stored. */
export const AttemptPage = page('attempts', Attempt, {
  user_id: Id,
  ...each(Count, 'total_attempts', 'missing'),
});

/** Before the answer; the range is null if the answer's number on the skill is unknown. */
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
  removed: Type.Object(each(Count, 'records', 'items'), {
    description: 'What the request itself took out of Redis: fields of the learner, remembered items',
  }),
  places: Type.Array(Place, { description: 'Rows, of daily sums the answers that they count' }),
  proof: nullable(
    Type.Object({
      query: Type.String({ description: 'Its parameters are those below and user_id, which is not kept' }),
      parameters: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()])),
    }),
  ),
});

const SectionScore = Type.Integer({ minimum: 200, maximum: 800, multipleOf: 10 });
export const TotalScore = Type.Integer({ minimum: 400, maximum: 1600, multipleOf: 10 });

/** Named after the days of the horizon. */
const predicted = {
  patternProperties: {
    '^predicted_(math|rw)_in_\\d{1,3}_days$': SectionScore,
    '^predicted_total_in_\\d{1,3}_days$': TotalScore,
  },
};

const bySection = (value: TSchema) => Type.Object(each(value, 'math', 'rw'));
const interval = (value: TSchema) => Type.Object(each(value, 'low', 'high'));

export const GoalTracking = Type.Object({
  target_score: TargetScore,
  target_date: nullable(Day),
  is_set: Type.Boolean({ description: 'Set or asked for; false: a default that nobody chose' }),
  days_to_goal: nullable(Type.Integer({ minimum: 0, maximum: goalModel.horizonDays })),
  progress_percent: Type.Number({ minimum: 0, maximum: 100 }),
  on_track: Type.Boolean(),
  goal_probability: Share,
});

export const SectionInterval = interval(SectionScore);
export const Intervals = Type.Object({
  ...each(SectionInterval, 'math', 'rw'),
  total: interval(TotalScore),
});

const scores = {
  ...each(SectionScore, 'current_math', 'current_rw'),
  current_total: TotalScore,
  confidence_intervals: Intervals,
  confidence_level: Type.Number({ minimum: 0.5, maximum: 0.99 }),
  goal_tracking: GoalTracking,
};
export const Scores = Type.Object(scores);

const Horizon = Type.Integer({ minimum: 1, maximum: goalModel.horizonDays });

const ActiveDays = Type.Number({ minimum: 0, maximum: activityModel.days });
export const Practice = Type.Object({ answers_per_day: Amount, active_days_14: ActiveDays });

export const Prediction = Type.Object(
  {
    ...scores,
    ...each(SectionScore, 'predicted_math_in_30_days', 'predicted_rw_in_30_days'),
    predicted_total_in_30_days: TotalScore,
    expected_accuracy: Type.Object({ ...each(Share, 'share', 'low', 'high'), answers: Amount }),
    recommendations: Type.Array(Type.String({ maxLength: 200 }), { maxItems: 5 }),
    recommendation_codes: Type.Array(Type.Object({ code: Type.String(), skill_id: nullable(Id) })),
    recommendations_reason: nullable(Type.String({ maxLength: 200 })),
    forecast_days: Horizon,
    data_points: bySection(Amount),
    assumed_practice: bySection(Practice),
    reliability: bySection(Share),
  },
  predicted,
);

const learner = { index: Count, user_id: Id };
const missing = { status: Type.Union([Type.Literal(404), Type.Literal(500)]), error: ErrorObject };
const ofClass = (found: TSchema) =>
  Type.Object({
    ...each(Count, 'found', 'missing', 'failed'),
    results: Type.Array(
      Type.Union([
        Type.Object({ ...learner, status: Type.Literal(200), data: found }),
        Type.Object({ ...learner, ...missing }),
      ]),
    ),
  });

export const ClassPredictions = ofClass(Prediction);
export const ClassMastery = ofClass(
  Type.Object({
    ...each(Count, 'total_attempts', 'correct_attempts', 'mastered'),
    last_attempt_at: nullable(Time),
    plateaus: Type.Array(Id),
    ...each(
      Type.Record(Type.String(), Share, { description: 'By skill_id' }),
      'expected_accuracy',
      'mastery',
    ),
  }),
);

export const WhatIf = Type.Object(
  {
    ...scores,
    user_id: Id,
    plan: Type.Object({ answers_per_day: Amount, skills: nullable(Type.Array(Id)), days: Horizon }),
    without_plan: Type.Object({}, predicted),
    needed_answers_per_day: nullable(Amount),
    needed_within_days: nullable(Count),
  },
  predicted,
);

export const NextItems = Type.Object({
  user_id: Id,
  target: Type.Number({ minimum: nextItemsModel.target.low, maximum: nextItemsModel.target.high }),
  items: Type.Array(
    Type.Object({
      index: Type.Integer({ minimum: 0, description: 'Of the item in the request' }),
      item_id: nullable(Id),
      skill_id: Id,
      ...each(Share, 'p_correct', 'mastery'),
      expected_gain: Type.Number({
        minimum: 0,
        description:
          'Points of its section by an hour on the skill, as if there were enough of it for an hour',
      }),
      reason_code: Type.Enum(reasonCodes),
      reason: Type.String({ maxLength: 200 }),
    }),
    { maxItems: nextItemsModel.maxItems, description: 'Best first' },
  ),
});
