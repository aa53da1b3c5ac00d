/** What is told of the skills of a tenant, over all of its learners. */
import Type from 'typebox';
import { nullable } from '../checked.js';
import { Id } from '../ids.js';
import { Amount, Change, Count, Day, each, Share } from './bodies.js';

const Text = nullable(Type.String());

const figures = { ...each(Count, 'learners', 'answers'), accuracy: Share };
const sums = {
  skill_id: Id,
  ...figures,
  ...each(Share, 'mean_p_correct', 'plateau_share'),
};

export const SkillStatisticsPage = Type.Object({
  skills: Type.Array(
    Type.Object({
      ...sums,
      velocity_per_attempt: Change,
      efficiency_index: nullable(Type.Number({ minimum: 0, maximum: 100 })),
      correct_per_minute: nullable(Amount),
    }),
  ),
  next_cursor: Text,
  source_lag_seconds: nullable(Amount),
});

const Step = Type.Object({
  attempt: Type.Integer({ minimum: 1, maximum: 30 }),
  learners: Type.Integer({
    minimum: 5,
    description: 'Who came so far: later steps tell of those who went on',
  }),
  ...each(Share, 'accuracy', 'low', 'high', 'p_correct', 'mastery'),
});

const CohortWeek = Type.Object({ cohort: Day, week: Count, ...figures, mean_mastery: Share });

export const SkillStatistics = Type.Object({
  ...sums,
  velocity_per_attempt: Type.Object(each(Change, 'q1', 'median', 'q3')),
  learning_curve: Type.Array(Step, { maxItems: 30 }),
  cohorts: Type.Array(CohortWeek, { maxItems: 26 * 26 }),
  source_lag_seconds: nullable(Amount),
});

export const SkillItem = Type.Object({
  item_id: Id,
  ...figures,
  ...each(Share, 'expected', 'p_correct'),
  ...each(Change, 'beyond', 'low', 'high'),
  median_seconds: nullable(Amount),
  sure_and_wrong: nullable(Share),
  misleading: nullable(Type.Boolean()),
});

export const SkillItemPage = Type.Object({
  skill_id: Id,
  items: Type.Array(SkillItem),
  next_cursor: Text,
  source_lag_seconds: nullable(Amount),
});
