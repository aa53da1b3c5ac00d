import Type, { type TSchema } from 'typebox';
import { nextItemsConstants } from '../../domain/advice/advice-constants.js';
import { rangeChanges } from '../../domain/advice/advice-texts.js';
import { reasonCodes } from '../../domain/advice/next-items.js';
import { sections } from '../../domain/base/common.js';
import { goalConstants } from '../../domain/base/score-constants.js';
import { goalStatuses } from '../../domain/score/goal.js';
import { activityConstants } from '../../domain/tracing/tracing-constants.js';
import { TargetScore } from '../learners/goals.js';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { Amount, Count, classResults, Day, namedFields, Share } from './shared-schemas.js';

const SectionScore = Type.Integer({ minimum: 200, maximum: 800, multipleOf: 10 });
export const TotalScore = Type.Integer({ minimum: 400, maximum: 1600, multipleOf: 10 });

const predictedScores = {
  patternProperties: {
    '^predicted_(math|rw)_in_\\d{1,3}_days$': SectionScore,
    '^predicted_total_in_\\d{1,3}_days$': TotalScore,
  },
};

const bySection = (value: TSchema) => Type.Object(namedFields(value, 'math', 'rw'));
const interval = (value: TSchema) => Type.Object(namedFields(value, 'low', 'high'));

export const GoalTracking = Type.Object({
  target_score: TargetScore,
  target_date: nullable(Day),
  is_set: Type.Boolean({
    description: 'True for a goal that is set or requested, false for the default goal.',
  }),
  days_to_goal: nullable(Type.Integer({ minimum: 0, maximum: goalConstants.horizonDays })),
  progress_percent: Type.Number({ minimum: 0, maximum: 100 }),
  on_track: Type.Boolean(),
  goal_probability: Share,
  status: Type.Enum(goalStatuses, { description: 'Does not change while the forecast changes little.' }),
});

export const SectionInterval = interval(SectionScore);

export const Intervals = Type.Object({
  ...namedFields(SectionInterval, 'math', 'rw'),
  total: interval(TotalScore),
});

const scores = {
  ...namedFields(SectionScore, 'current_math', 'current_rw'),
  current_total: TotalScore,
  confidence_intervals: Intervals,
  confidence_level: Type.Number({ minimum: 0.5, maximum: 0.99 }),
  goal_tracking: GoalTracking,
};

export const Scores = Type.Object(scores);
const Horizon = Type.Integer({ minimum: 1, maximum: goalConstants.horizonDays });
const ActiveDays = Type.Number({ minimum: 0, maximum: activityConstants.days });
export const Practice = Type.Object({ answers_per_day: Amount, active_days_14: ActiveDays });

const RangeAdvice = Type.Object({
  code: Type.Enum(Object.keys(rangeChanges), {
    description: 'What would narrow the range of the total most.',
  }),
  section: nullable(Type.Enum(sections)),
  text: Type.String({ maxLength: 200 }),
});

export const Prediction = Type.Object(
  {
    ...scores,
    ...namedFields(SectionScore, 'predicted_math_in_30_days', 'predicted_rw_in_30_days'),
    predicted_total_in_30_days: TotalScore,
    range_advice: nullable(RangeAdvice),
    expected_accuracy: Type.Object({ ...namedFields(Share, 'share', 'low', 'high'), answers: Amount }),
    recommendations: Type.Array(Type.String({ maxLength: 200 }), { maxItems: 5 }),
    recommendation_codes: Type.Array(Type.Object({ code: Type.String(), skill_id: nullable(StoredId) })),
    recommendations_reason: nullable(Type.String({ maxLength: 200 })),
    forecast_days: Horizon,
    data_points: bySection(Amount),
    assumed_practice: bySection(Practice),
    reliability: bySection(Share),
  },
  predictedScores,
);

export const ClassPredictions = classResults(Prediction);

export const WhatIf = Type.Object(
  {
    ...scores,
    user_id: StoredId,
    plan: Type.Object({ answers_per_day: Amount, skills: nullable(Type.Array(StoredId)), days: Horizon }),
    without_plan: Type.Object({}, predictedScores),
    needed_answers_per_day: nullable(Amount),
    needed_within_days: nullable(Count),
  },
  predictedScores,
);

const practisedSkill = { skill_id: StoredId, mastery: Share };

export const NextItems = Type.Object({
  user_id: StoredId,
  target: Type.Number({ minimum: nextItemsConstants.target.low, maximum: nextItemsConstants.target.high }),
  items: Type.Array(
    Type.Object({
      index: Type.Integer({ minimum: 0, description: 'Position of the item in the request, from 0.' }),
      item_id: nullable(StoredId),
      ...practisedSkill,
      skills: Type.Optional(
        Type.Array(Type.Object(practisedSkill), {
          description:
            'If the item has `skill_ids`: each skill, in that order. `skill_id` and `mastery` are of the first.',
        }),
      ),
      p_correct: Share,
      expected_gain: Type.Number({
        minimum: 0,
        description:
          'Section points gained by one hour of practice on the skill, if there are enough items. With several skills: the mean of their gains.',
      }),
      reason_code: Type.Enum(reasonCodes),
      reason: Type.String({ maxLength: 200 }),
    }),
    { maxItems: nextItemsConstants.maxItems, description: 'Items in descending order of value.' },
  ),
});
