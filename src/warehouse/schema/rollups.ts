/**
 * Daily sums, kept by materialized views as attempts arrive. A row of a rollup is made by answers of one Redis
 * partition only, so that whoever drains a partition may compute its rollups again without meeting anybody.
 */
import {
  type Column,
  columnsOf,
  defineTable,
  rememberingTokens,
  type Table,
  type View,
} from '../clickhouse/table.js';

export interface Rollup {
  table: Table;
  /** Columns that name a row, as expressions over `attempts`. */
  keys: Readonly<Record<string, string>>;
  /** The other columns, as aggregates over `attempts`. */
  sums: Readonly<Record<string, string>>;
  /** Plain view for analysts: finished figures, one row a key, no FINAL and no -Merge. */
  view: View;
}

/** science.md 5: a time of 0 s or above an hour counts as missing. */
const timed = 'time_spent_seconds > 0 AND time_spent_seconds <= 3600';
const at = '(occurred_at, learner_seq, %)';
const point = "Tuple(DateTime64(3, 'UTC'), UInt32, Float64)";

const identity = columnsOf(`
  tenant LowCardinality(String) -- Owner of the learners
  skill_id LowCardinality(String) -- Skill
  day Date -- UTC day of occurred_at
`);

/** A column that adds itself up when parts are merged. */
const summed = (column: Column): Column => ({
  ...column,
  type: `SimpleAggregateFunction(sum, ${column.type})`,
});

const sharedColumns = columnsOf(`
  attempts UInt64 -- Answers
  correct UInt64 -- Correct answers
  timed_attempts UInt64 -- Answers with a time above 0 and up to 3600 s
  timed_correct UInt64 -- Correct ones among timed_attempts
  timed_seconds Float64 -- Seconds of timed_attempts
  log_seconds Float64 -- Sum of ln(seconds) of timed_attempts, for time norms
  log_seconds_squared Float64 -- Sum of ln(seconds) squared of timed_attempts
  mastery_gain Float64 -- Sum of mastery_after - mastery_before: over attempts, velocity per attempt
  predicted_correct Float64 -- Sum of p_correct; near correct where the model is calibrated
  squared_error Float64 -- Sum of (p_correct - is_correct) squared: over attempts, the Brier score
  plateau_attempts UInt64 -- Answers given on a plateau
`).map(summed);

const sharedSums: Readonly<Record<string, string>> = {
  attempts: 'count()',
  correct: 'sum(is_correct)',
  timed_attempts: `countIf(${timed})`,
  timed_correct: `countIf(is_correct = 1 AND ${timed})`,
  timed_seconds: `sumIf(assumeNotNull(time_spent_seconds), ${timed})`,
  log_seconds: `sumIf(log(assumeNotNull(time_spent_seconds)), ${timed})`,
  log_seconds_squared: `sumIf(pow(log(assumeNotNull(time_spent_seconds)), 2), ${timed})`,
  mastery_gain: 'sum(mastery_after - mastery_before)',
  predicted_correct: 'sum(p_correct)',
  squared_error: 'sum(pow(p_correct - is_correct, 2))',
  plateau_attempts: 'sum(plateau_detected)',
};

/** The figures of a view that are sums of the rollup's columns, and what follows from them. */
const finished = `${sharedColumns.map(({ name }) => `sum(r.${name}) AS ${name}`).join(', ')},
  correct / attempts AS accuracy,
  if(timed_attempts = 0, NULL, timed_seconds / timed_attempts) AS mean_seconds,
  if(timed_seconds = 0, NULL, 60 * timed_correct / timed_seconds) AS correct_per_minute,
  mastery_gain / attempts AS velocity_per_attempt,
  predicted_correct / attempts AS mean_p_correct,
  squared_error / attempts AS brier`;

const layout = { engine: 'AggregatingMergeTree', settings: rememberingTokens };

export const learnerSkill: Rollup = {
  table: defineTable(
    'daily_learner_skill',
    'One day of one learner on one skill; read it through the view learner_skill_daily',
    [
      ...identity.slice(0, 1),
      ...columnsOf('user_id String -- Learner'),
      ...identity.slice(1),
      ...sharedColumns,
      ...columnsOf(`
        first_answer SimpleAggregateFunction(min, ${point})
          -- The day's first answer: occurred_at, learner_seq, mastery_before
        last_answer SimpleAggregateFunction(max, ${point})
          -- The day's last answer: occurred_at, learner_seq, mastery_after
      `),
    ],
    { ...layout, orderBy: '(tenant, user_id, skill_id, day)' },
  ),
  keys: { tenant: 'tenant', user_id: 'user_id', skill_id: 'skill_id', day: 'toDate(occurred_at)' },
  sums: {
    ...sharedSums,
    first_answer: `min(${at.replace('%', 'mastery_before')})`,
    last_answer: `max(${at.replace('%', 'mastery_after')})`,
  },
  view: {
    name: 'learner_skill_daily',
    comment: 'Answers, accuracy, pace and mastery by learner, skill and UTC day',
    query: `SELECT tenant, user_id, skill_id, day, ${finished},
  min(r.first_answer).3 AS first_mastery,
  max(r.last_answer).3 AS last_mastery,
  max(r.last_answer).1 AS last_answer_at
FROM daily_learner_skill AS r GROUP BY tenant, user_id, skill_id, day`,
  },
};

export const skillDays: Rollup = {
  table: defineTable(
    'daily_skill',
    'One day of one skill, by Redis partition; read it through the view skill_daily',
    [
      ...identity,
      ...columnsOf('partition_id UInt16 -- Redis partition of the learners'),
      ...sharedColumns,
      ...columnsOf('mastery_sum Float64 -- Sum of mastery_after').map(summed),
      ...columnsOf('learners AggregateFunction(uniq, String) -- State of the number of learners'),
    ],
    // A shard's own rows stay with it; this is for those that are computed again.
    { ...layout, orderBy: '(tenant, skill_id, day, partition_id)', shardBy: 'partition_id' },
  ),
  keys: { tenant: 'tenant', skill_id: 'skill_id', day: 'toDate(occurred_at)', partition_id: 'partition_id' },
  sums: { ...sharedSums, mastery_sum: 'sum(mastery_after)', learners: 'uniqState(user_id)' },
  view: {
    name: 'skill_daily',
    comment: 'Answers, learners, accuracy, pace, mean mastery and calibration by skill and UTC day',
    query: `SELECT tenant, skill_id, day, ${finished},
  sum(r.mastery_sum) / attempts AS mean_mastery,
  uniqMerge(r.learners) AS learners
FROM daily_skill AS r GROUP BY tenant, skill_id, day`,
  },
};

export const rollups: readonly Rollup[] = [learnerSkill, skillDays];

/** The rollup that names learners. */
export const learnerSkillDays = learnerSkill.table;

/**
 * @param where a condition over `attempts`; all rows without it
 * @param from `attempts`, or the table that holds its rows here
 */
export function selectRollup(
  { keys, sums }: Pick<Rollup, 'keys' | 'sums'>,
  where?: string,
  from = 'attempts',
): string {
  const columns = Object.entries({ ...keys, ...sums }).map(
    ([name, expression]) => `${expression} AS ${name}`,
  );
  return [
    `SELECT ${columns.join(', ')}`,
    `FROM ${from}`,
    ...(where ? [`WHERE ${where}`] : []),
    `GROUP BY ${Object.keys(keys).join(', ')}`,
  ].join('\n');
}

/** Columns in the order of selectRollup, for an INSERT. */
export const rollupColumns = ({ keys, sums }: Pick<Rollup, 'keys' | 'sums'>): string =>
  Object.keys({ ...keys, ...sums }).join(', ');
