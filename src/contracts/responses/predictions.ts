/** Forecasts of scores. */
import Type, { type TSchema } from 'typebox';
import { activityModel, goalModel } from '../../domain/base/params.js';
import { TargetScore } from '../goals.js';
import { Id } from '../ids.js';
import { Amount, Count, Day, ErrorObject, each, nullable, Share } from './parts.js';

const SectionScore = Type.Integer({ minimum: 200, maximum: 800, multipleOf: 10 });
const TotalScore = Type.Integer({ minimum: 400, maximum: 1600, multipleOf: 10 });

/** Fields for a horizon are named after its days. */
const predicted = {
  patternProperties: {
    '^predicted_(math|rw)_in_\\d{1,3}_days$': SectionScore,
    '^predicted_total_in_\\d{1,3}_days$': TotalScore,
  },
};

const bySection = (value: TSchema) => Type.Object(each(value, 'math', 'rw'));
const interval = (value: TSchema) => Type.Object(each(value, 'low', 'high'));

const GoalTracking = Type.Object({
  target_score: TargetScore,
  target_date: nullable(Day),
  days_to_goal: nullable(Type.Integer({ minimum: 0, maximum: goalModel.horizonDays })),
  progress_percent: Type.Number({ minimum: 0, maximum: 100 }),
  on_track: Type.Boolean(),
  goal_probability: Share,
});

/** What every forecast has. */
const scores = {
  ...each(SectionScore, 'current_math', 'current_rw'),
  current_total: TotalScore,
  confidence_intervals: Type.Object({
    ...each(interval(SectionScore), 'math', 'rw'),
    total: interval(TotalScore),
  }),
  confidence_level: Type.Number({ minimum: 0.5, maximum: 0.99 }),
  goal_tracking: GoalTracking,
};

const Horizon = Type.Integer({ minimum: 1, maximum: goalModel.horizonDays });

const Practice = Type.Object({
  answers_per_day: Amount,
  active_days_14: Type.Number({ minimum: 0, maximum: activityModel.days }),
});

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

export const ClassPredictions = Type.Object({
  ...each(Count, 'found', 'missing', 'failed'),
  results: Type.Array(
    Type.Union([
      Type.Object({ ...learner, status: Type.Literal(200), data: Prediction }),
      Type.Object({ ...learner, ...missing }),
    ]),
  ),
});

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
