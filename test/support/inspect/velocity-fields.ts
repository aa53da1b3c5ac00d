/** Fields of the velocity response that come from ClickHouse. */
export const velocityFromClickHouse = [
  'velocity_per_day',
  'velocity_per_day_low',
  'velocity_per_day_high',
  'velocity_per_week',
  'velocity_7d',
  'acceleration',
  'answers_per_day',
  'active_days',
  'accuracy_7d',
  'accuracy_28d',
  'series',
] as const;
