/** How fast a learner learns. */
import Type from 'typebox';
import { Id } from '../ids.js';
import { Change, Count, Day, nullable, Share } from './parts.js';

const Rate = nullable(Type.Number());

const SeriesDay = Type.Object({ date: Day, mastery: nullable(Share), attempts: Count, correct: Count });

export const Velocity = Type.Object({
  user_id: Id,
  skill_id: nullable(Id),
  days: Type.Integer({ minimum: 7, maximum: 365 }),
  velocity_per_attempt: Rate,
  velocity_per_day: Rate,
  velocity_per_day_low: Rate,
  velocity_per_day_high: Rate,
  velocity_per_week: Rate,
  velocity_7d: Rate,
  acceleration: Rate,
  momentum: nullable(Change),
  momentum_label: nullable(Type.Enum(['building', 'steady', 'fading'])),
  plateaus: Type.Array(Id),
  answers_per_day: nullable(Type.Number({ minimum: 0 })),
  active_days: nullable(Count),
  accuracy_7d: nullable(Share),
  accuracy_28d: nullable(Share),
  series: nullable(Type.Array(SeriesDay)),
  source_lag_seconds: nullable(Type.Number({ minimum: 0 })),
});
