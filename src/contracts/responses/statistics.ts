/** What is told of the skills of a tenant, over all of its learners. */
import Type from 'typebox';
import { nullable } from '../checked.js';
import { Id } from '../ids.js';
import { Amount, Count, each, Share } from './bodies.js';

const Text = nullable(Type.String());

const sums = {
  skill_id: Id,
  ...each(Count, 'learners', 'answers'),
  ...each(Share, 'accuracy', 'mean_p_correct', 'plateau_share'),
};

export const SkillStatisticsPage = Type.Object({
  skills: Type.Array(
    Type.Object({
      ...sums,
      velocity_per_attempt: Type.Number({ minimum: -1, maximum: 1 }),
      efficiency_index: nullable(Type.Number({ minimum: 0, maximum: 100 })),
      correct_per_minute: nullable(Amount),
    }),
  ),
  next_cursor: Text,
  source_lag_seconds: nullable(Amount),
});
