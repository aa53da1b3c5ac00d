/** What is told of a tenant's model: how good its predictions are. */
import Type from 'typebox';
import { nullable } from '../checked.js';
import { Id } from '../ids.js';
import { Amount, Count, each, Share } from './bodies.js';

const Bin = Type.Object({
  ...each(Share, 'from', 'to', 'p_correct', 'accuracy', 'low', 'high'),
  answers: Type.Integer({ minimum: 1 }),
});

export const Reliability = Type.Object({
  days: Type.Integer({ minimum: 1, maximum: 365 }),
  skill_id: nullable(Id),
  answers: Count,
  ...each(nullable(Share), 'accuracy', 'mean_p_correct', 'brier'),
  log_loss: nullable(Amount),
  bins: Type.Array(Bin, {
    maxItems: 10,
    description: 'Tenths of p_correct with answers; low and high: 95 % interval of accuracy',
  }),
  source_lag_seconds: nullable(Amount),
});

const Band = Type.Object({
  forecast_days: Type.Integer({ minimum: 1, maximum: 365 }),
  history_from: Count,
  history_to: nullable(Count),
  ...each(Count, 'cases', 'learners', 'answers'),
  ...each(
    Share,
    'coverage_50',
    'coverage_80',
    'coverage_95',
    'mean_width_50',
    'mean_width_80',
    'mean_width_95',
  ),
  ...each(Share, 'expected_share', 'observed_share', 'mean_squared_error', 'brier'),
});
export const Coverage = Type.Object({ bands: Type.Array(Band) });
