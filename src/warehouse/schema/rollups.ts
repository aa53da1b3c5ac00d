/**
 * Daily sums, kept by materialized views as attempts arrive, and what stays of answers whose rows were dropped for their
 * age (ADR 24): their sums by learner, and the month up to which everything is archived.
 *
 * A row of a rollup is made by answers of one Redis partition only, so that whoever drains a partition may compute its
 * rollups again without meeting anybody. The rollups keep what they have of dropped rows; who computes them again adds the
 * archived sums. One row in `archived_months`, written after the month's sums and before its rows are dropped, makes the
 * sums count: a reader sees each answer once, wherever an archiving ends.
 */
import {
  type Column,
  columnsOf,
  defineTable,
  rememberingTokens,
  type Table,
  type View,
} from '../clickhouse/ddl.js';

type Expressions = Readonly<Record<string, string>>;

export interface Rollup {
  table: Table;
  /** Columns that name a row, as expressions over `attempts`. */
  keys: Expressions;
  /** The other columns, as aggregates over `attempts`. */
  sums: Expressions;
  /** Plain view for analysts: finished figures, one row a key, no FINAL and no -Merge. */
  view: View;
}

function rollupOf(table: Table, view: View): Rollup {
  const keyNames = table.orderBy.slice(1, -1).split(', ');
  const expressions = (isKey: boolean): Expressions =>
    Object.fromEntries(
      table.columns
        .filter(({ name }) => keyNames.includes(name) === isKey)
        .map(({ name, source = name }) => [name, source]),
    );
  return { table, view, keys: expressions(true), sums: expressions(false) };
}

const identity = columnsOf(`
  tenant LowCardinality(String) -- Owner of the learners
  skill_id LowCardinality(String) -- Skill
  day Date = toDate(occurred_at) -- UTC day of occurred_at
`);

/** A column that adds itself up when parts are merged, and its type without that. */
const summed = (column: Column): Column => ({
  ...column,
  type: `SimpleAggregateFunction(sum, ${column.type})`,
});
const plainType = (type: string): string => type.replace(/^SimpleAggregateFunction\(\w+, (.*)\)$/, '$1');

/** science.md 5: a time of 0 s or above an hour counts as missing. */
const timed = 'time_spent_seconds > 0 AND time_spent_seconds <= 3600';
const seconds = 'assumeNotNull(time_spent_seconds)';

const sharedColumns = columnsOf(`
  attempts UInt64 = count() -- Answers
  correct UInt64 = sum(is_correct) -- Correct answers
  timed_attempts UInt64 = countIf(${timed}) -- Answers with a time above 0 and up to 3600 s
  timed_correct UInt64 = countIf(is_correct = 1 AND ${timed}) -- Correct ones among timed_attempts
  timed_seconds Float64 = sumIf(${seconds}, ${timed}) -- Seconds of timed_attempts
  log_seconds Float64 = sumIf(log(${seconds}), ${timed}) -- Sum of ln(seconds) of timed_attempts, for time norms
  log_seconds_squared Float64 = sumIf(pow(log(${seconds}), 2), ${timed}) -- Sum of ln(seconds) squared of timed_attempts
  mastery_gain Float64 = sum(mastery_after - mastery_before)
    -- Sum of mastery_after - mastery_before: over attempts, velocity per attempt
  predicted_correct Float64 = sum(p_correct) -- Sum of p_correct; near correct where the model is calibrated
  squared_error Float64 = sum(pow(p_correct - is_correct, 2))
    -- Sum of (p_correct - is_correct) squared: over attempts, the Brier score
  plateau_attempts UInt64 = sum(plateau_detected) -- Answers given on a plateau
`).map(summed);

const masterySum = columnsOf('mastery_sum Float64 = sum(mastery_after) -- Sum of mastery_after');
const point = "Tuple(DateTime64(3, 'UTC'), UInt32, Float64)";

/** The figures of a view that are sums of the rollup's columns, and what follows from them. */
const finished = `${sharedColumns.map(({ name }) => `sum(r.${name}) AS ${name}`).join(', ')},
  correct / attempts AS accuracy,
  if(timed_attempts = 0, NULL, timed_seconds / timed_attempts) AS mean_seconds,
  if(timed_seconds = 0, NULL, 60 * timed_correct / timed_seconds) AS correct_per_minute,
  mastery_gain / attempts AS velocity_per_attempt,
  predicted_correct / attempts AS mean_p_correct,
  squared_error / attempts AS brier`;

const layout = { engine: 'AggregatingMergeTree', settings: rememberingTokens };

export const learnerSkill = rollupOf(
  defineTable(
    'daily_learner_skill -- One day of one learner on one skill; read it through the view learner_skill_daily',
    [
      ...identity.slice(0, 1),
      ...columnsOf('user_id String -- Learner'),
      ...identity.slice(1),
      ...sharedColumns,
      ...columnsOf(`
        first_answer SimpleAggregateFunction(min, ${point}) = min((occurred_at, learner_seq, mastery_before))
          -- The day's first answer: occurred_at, learner_seq, mastery_before
        last_answer SimpleAggregateFunction(max, ${point}) = max((occurred_at, learner_seq, mastery_after))
          -- The day's last answer: occurred_at, learner_seq, mastery_after
      `),
    ],
    { ...layout, orderBy: '(tenant, user_id, skill_id, day)' },
  ),
  {
    name: 'learner_skill_daily',
    comment: 'Answers, accuracy, pace and mastery by learner, skill and UTC day',
    query: `SELECT tenant, user_id, skill_id, day, ${finished},
  min(r.first_answer).3 AS first_mastery,
  max(r.last_answer).3 AS last_mastery,
  max(r.last_answer).1 AS last_answer_at
FROM daily_learner_skill AS r GROUP BY tenant, user_id, skill_id, day`,
  },
);

export const skillDays = rollupOf(
  defineTable(
    'daily_skill -- One day of one skill, by Redis partition; read it through the view skill_daily',
    [
      ...identity,
      ...columnsOf('partition_id UInt16 -- Redis partition of the learners'),
      ...sharedColumns,
      ...masterySum.map(summed),
      ...columnsOf(
        'learners AggregateFunction(uniq, String) = uniqState(user_id) -- State of the number of learners',
      ),
    ],
    // A shard's own rows stay with it; this is for those that are computed again.
    { ...layout, orderBy: '(tenant, skill_id, day, partition_id)', shardBy: 'partition_id' },
  ),
  {
    name: 'skill_daily',
    comment: 'Answers, learners, accuracy, pace, mean mastery and calibration by skill and UTC day',
    query: `SELECT tenant, skill_id, day, ${finished},
  sum(r.mastery_sum) / attempts AS mean_mastery,
  uniqMerge(r.learners) AS learners
FROM daily_skill AS r GROUP BY tenant, skill_id, day`,
  },
);

export const rollups: readonly Rollup[] = [learnerSkill, skillDays];

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

export const rollupColumns = ({ keys, sums }: Pick<Rollup, 'keys' | 'sums'>): string =>
  Object.keys({ ...keys, ...sums }).join(', ');

const monthOfArrival = 'month UInt32 -- Month of received_at, as 202601';

/** Rows may be written again, by a run that is repeated: the engine keeps one of a key. */
export const archivedLearnerSkill = defineTable(
  'archived_learner_skill -- One day of one learner on one skill, of answers whose rows were dropped for their age; daily_learner_skill and daily_skill have them too',
  [
    ...columnsOf(`
      ${monthOfArrival}
      partition_id UInt16 -- Redis partition of the learner
    `),
    ...learnerSkill.table.columns.map((column) => ({ ...column, type: plainType(column.type) })),
    ...masterySum,
  ],
  {
    engine: 'ReplacingMergeTree',
    partitionBy: 'month',
    orderBy: '(tenant, user_id, skill_id, day, month)',
  },
);

/** The same as a rollup of `attempts`, for the INSERT that fills it. */
export const archivedRollup: Pick<Rollup, 'keys' | 'sums'> = {
  keys: { month: 'toYYYYMM(received_at)', partition_id: 'partition_id', ...learnerSkill.keys },
  sums: { ...learnerSkill.sums, mastery_sum: 'sum(mastery_after)' },
};

/** Doubles do no harm: it is read by its highest month. */
export const archivedMonths = defineTable(
  'archived_months -- Months of arrival whose answers are in archived_learner_skill and no longer in attempts',
  `
    ${monthOfArrival}
    answers UInt64 -- Answers that arrived in it
    archived_at DateTime64(3, 'UTC') DEFAULT now64(3) -- When
  `,
  { engine: 'MergeTree', orderBy: 'month', shardBy: 'month' },
);

/** Scalar: the last archived month as 202601; 0: none. */
export const archivedThrough = '(SELECT max(month) FROM archived_months)';
/** Condition over `attempts`: rows that count themselves, and not by what is archived of their month. */
export const keptRows = `toYYYYMM(received_at) > ${archivedThrough}`;
/** What counts of the archive; readers name its columns by `a`. */
export const archivedDays = `${archivedLearnerSkill.name} AS a FINAL`;
export const isArchived = `a.month <= ${archivedThrough}`;

const aggregates: Expressions = {
  first_answer: 'min(a.first_answer)',
  last_answer: 'max(a.last_answer)',
  learners: 'uniqState(a.user_id)',
};

/** What is archived, as rows of the rollup. @param where a condition over `a` */
export function selectArchived({ keys, sums }: Rollup, where: string): string {
  const names = Object.keys(keys);
  const columns = [
    ...names.map((name) => `a.${name} AS ${name}`),
    ...Object.keys(sums).map((name) => `${aggregates[name] ?? `sum(a.${name})`} AS ${name}`),
  ];
  return [
    `SELECT ${columns.join(', ')}`,
    `FROM ${archivedDays}`,
    `WHERE ${isArchived} AND ${where}`,
    `GROUP BY ${names.map((name) => `a.${name}`).join(', ')}`,
  ].join('\n');
}
