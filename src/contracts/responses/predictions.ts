/** Forecasts of scores. */
import Type, { type TProperties } from 'typebox';
import { activityModel, goalModel } from '../../domain/base/params.js';
import { TargetScore } from '../goals.js';
import { Id } from '../ids.js';
import { Count, Day, ErrorObject, nullable, Share } from './parts.js';

const SectionScore = Type.Integer({ minimum: 200, maximum: 800, multipleOf: 10 });
const TotalScore = Type.Integer({ minimum: 400, maximum: 1600, multipleOf: 10 });

/** Fields for a horizon are named after its days. */
const predicted = {
  '^predicted_(math|rw)_in_\\d{1,3}_days$': SectionScore,
  '^predicted_total_in_\\d{1,3}_days$': TotalScore,
};
const Predicted = Type.Object({}, { patternProperties: predicted });

const current = { current_math: SectionScore, current_rw: SectionScore, current_total: TotalScore };

const interval = <Low>(low: Low) => ({ low, high: low });
const intervals = Type.Object({
  math: Type.Object(interval(SectionScore)),
  rw: Type.Object(interval(SectionScore)),
  total: Type.Object(interval(TotalScore)),
});

const Horizon = Type.Integer({ minimum: 1, maximum: goalModel.horizonDays });
const Level = Type.Number({ minimum: 0.5, maximum: 0.99 });

const GoalTracking = Type.Object({
  target_score: TargetScore,
  target_date: nullable(Day),
  days_to_goal: nullable(Type.Integer({ minimum: 0, maximum: goalModel.horizonDays })),
  progress_percent: Type.Number({ minimum: 0, maximum: 100 }),
  on_track: Type.Boolean(),
  goal_probability: Share,
});

const Practice = Type.Object({
  answers_per_day: Type.Number({ minimum: 0 }),
  active_days_14: Type.Number({ minimum: 0, maximum: activityModel.days }),
});

const bySection = <Value>(value: Value) => ({ math: value, rw: value });

export const Prediction = Type.Object(
  {
    ...current,
    predicted_math_in_30_days: SectionScore,
    predicted_rw_in_30_days: SectionScore,
    predicted_total_in_30_days: TotalScore,
    confidence_intervals: intervals,
    goal_tracking: GoalTracking,
    expected_accuracy: Type.Object({
      share: Share,
      ...interval(Share),
      answers: Type.Number({ minimum: 0 }),
    }),
    recommendations: Type.Array(Type.String({ maxLength: 200 }), { maxItems: 5 }),
    recommendation_codes: Type.Array(Type.Object({ code: Type.String(), skill_id: nullable(Id) })),
    recommendations_reason: nullable(Type.String({ maxLength: 200 })),
    forecast_days: Horizon,
    confidence_level: Level,
    data_points: Type.Object(bySection(Type.Number({ minimum: 0 }))),
    assumed_practice: Type.Object(bySection(Practice)),
    reliability: Type.Object(bySection(Share)),
  },
  { patternProperties: predicted },
);

const learner = { index: Count, user_id: Id } satisfies TProperties;

export const ClassPredictions = Type.Object({
  found: Count,
  missing: Count,
  failed: Count,
  results: Type.Array(
    Type.Union([
      Type.Object({ ...learner, status: Type.Literal(200), data: Prediction }),
      Type.Object({
        ...learner,
        status: Type.Union([Type.Literal(404), Type.Literal(500)]),
        error: ErrorObject,
      }),
    ]),
  ),
});

export const WhatIf = Type.Object(
  {
    user_id: Id,
    plan: Type.Object({
      answers_per_day: Type.Number({ minimum: 0 }),
      skills: nullable(Type.Array(Id)),
      days: Horizon,
    }),
    ...current,
    confidence_intervals: intervals,
    confidence_level: Level,
    goal_tracking: GoalTracking,
    without_plan: Predicted,
    needed_answers_per_day: nullable(Type.Number({ minimum: 0 })),
    needed_within_days: nullable(Type.Integer({ minimum: 0 })),
  },
  { patternProperties: predicted },
);
