/**
 * Sums of answers, kept by materialized views as attempts arrive, and what stays of answers whose rows were dropped for their
 * age (ADR 24): their sums by learner, and the month up to which everything is archived.
 *
 * A row of a rollup is made by answers of one Redis partition only, so that whoever drains a partition may compute its
 * rollups again without meeting anybody. The rollups keep what they have of dropped rows; who computes them again adds the
 * archived sums. One row in `archived_months`, written after the month's sums and before its rows are dropped, makes the
 * sums count: a reader sees each answer once, wherever an archiving ends.
 */
import { type Column, columnsOf, defineTable, quote, rememberingTokens } from '../clickhouse/ddl.js';
import {
  type Expressions,
  expressionsOf,
  groupBy,
  type Level,
  type PartialSums,
  type Rollup,
  rollupOf,
  type Summed,
  whereAsked,
} from './rollup.js';

const tenant = columnsOf('tenant LowCardinality(String) -- Owner of the learners');
const user = columnsOf('user_id String zstd -- Learner');
const skill = columnsOf('skill_id LowCardinality(String) zstd -- Skill');
const day = columnsOf('day Date zstd = toDate(occurred_at) -- UTC day of occurred_at');

/** A column that adds itself up when parts are merged. */
const summed = (column: Column): Column => ({
  ...column,
  type: `SimpleAggregateFunction(sum, ${column.type})`,
});
/**
 * The same of one learner, in half the bytes: four of them count to 4 billion, and hold a sum to seven digits. There are
 * nearly as many rows as answers where days are short.
 */
const narrow = (column: Column): Column => ({
  ...column,
  type: `SimpleAggregateFunction(sumWithOverflow, ${column.type.replace('64', '32')})`,
  codec: 'ZSTD(1)',
});

/** science.md 5: a time of 0 s or above an hour counts as missing. */
const timed = 'time_spent_seconds > 0 AND time_spent_seconds <= 3600';
const seconds = 'assumeNotNull(time_spent_seconds)';

const answerSums = columnsOf(`
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
`);
const masterySum = columnsOf('mastery_sum Float64 = sum(mastery_after) -- Sum of mastery_after');
const without = (...names: string[]) => answerSums.filter(({ name }) => !names.includes(name));

/** When, number and mastery of an answer as one number, the later the larger: the engine compares a tuple far more slowly. */
const packed = (at: string, seq: string, mastery: string): string =>
  `bitShiftLeft(toUInt128(toUnixTimestamp(${at})), 64) + bitShiftLeft(toUInt128(${seq}), 32) + reinterpretAsUInt32(toFloat32(${mastery}))`;
/** Second and mastery of a packed answer, for SELECT. */
export const unpacked = (answer: string) => ({
  at: `toDateTime(toUInt32(bitShiftRight(${answer}, 64)), 'UTC')`,
  mastery: `reinterpretAsFloat32(toUInt32(bitAnd(${answer}, 4294967295)))`,
});
const lastAnswer = columnsOf(
  `last_answer SimpleAggregateFunction(max, UInt128) zstd = max(${packed('occurred_at', 'learner_seq', 'mastery_after')})
    -- The day's last answer: second of occurred_at, learner_seq, bits of mastery_after as Float32, in 32 bits each`,
);

/** What follows from sums of answers. */
const pace = `correct / attempts AS accuracy,
  if(timed_attempts = 0, NULL, timed_seconds / timed_attempts) AS mean_seconds,
  if(timed_seconds = 0, NULL, 60 * timed_correct / timed_seconds) AS correct_per_minute`;
const gain = 'mastery_gain / attempts AS velocity_per_attempt';
const calibration = `predicted_correct / attempts AS mean_p_correct,
  squared_error / attempts AS brier`;
const names = (columns: readonly Column[]): string => columns.map(({ name }) => name).join(', ');
export const sumEach = (alias: string, columns: readonly Column[]): string =>
  columns.map(({ name }) => `sum(${alias}.${name}) AS ${name}`).join(', ');

const layout = { engine: 'AggregatingMergeTree', settings: rememberingTokens };

/** What velocity and efficiency are made of. */
export const skillSums = without('squared_error', 'plateau_attempts', 'log_seconds_squared');
const daySums = without('log_seconds_squared');
const { mastery: lastMastery, at: lastAnswerAt } = unpacked('last_answer');

const isKind = (kind: string): string => `kind = '${kind}'`;
const kinds = "Enum8('day', 'total')";
const kindOf = (day: string): string => `CAST(1 + grouping(${day}), ${quote(kinds)})`;
/** Sums that rows of one kind alone have, by the value of grouping(day) there: they take no room in the others. */
const partialSums: PartialSums = {
  squared_error: 0,
  plateau_attempts: 0,
  last_answer: 0,
  days: 1,
  plateau_day: 1,
};

// FINAL costs a sixth of a GROUP BY of the key or less, and holds nothing: whole tables can be pulled through these two.
const skillDay: Level = {
  set: ['tenant', 'user_id', 'skill_id', 'day'],
  where: isKind('day'),
  view: {
    name: 'learner_skill_daily',
    comment: 'Answers, accuracy, pace and mastery by learner, skill and UTC day',
    query: `SELECT tenant, user_id, skill_id, day, ${names(daySums)},
  ${pace},
  ${gain},
  ${calibration},
  greatest(0, least(1, last_mastery - mastery_gain)) AS first_mastery,
  ${lastMastery} AS last_mastery,
  ${lastAnswerAt} AS last_answer_at
FROM learner_sums FINAL WHERE ${isKind('day')}`,
  },
};

/** Sums over days would be as many groups as there are learners and skills, and each query would make them again. */
const skillTotal: Level = {
  set: ['tenant', 'user_id', 'skill_id'],
  where: isKind('total'),
  view: {
    name: 'learner_skill_total',
    comment: 'Answers, accuracy, pace and velocity by learner and skill, over all days',
    query: `SELECT tenant, user_id, skill_id, ${names(skillSums)},
  length(days) AS active_days,
  arrayMax(days) AS last_day,
  plateau_day = last_day AS on_plateau,
  ${pace},
  ${gain},
  mastery_gain / active_days AS velocity_per_active_day
FROM learner_sums FINAL WHERE ${isKind('total')}`,
  },
};

/** In one table: an insert costs more by each part that it makes than by the rows in it. */
export const learnerSums = rollupOf(
  defineTable(
    'learner_sums -- Answers of one learner on one skill, by day and over all days; read them through the views learner_skill_daily and learner_skill_total',
    [
      ...[...tenant, ...user, ...skill, ...day],
      ...columnsOf(`
        kind ${kinds} zstd = ${kindOf('day')}
          -- day: sums of a day; total: of all days, and day is 1970-01-01
      `),
      ...daySums.map(narrow),
      ...lastAnswer,
      ...columnsOf(`
        days SimpleAggregateFunction(groupUniqArrayArray, Array(Date)) zstd = groupUniqArray(toDate(occurred_at))
          -- Where kind is total: UTC days with answers, in no order
        plateau_day SimpleAggregateFunction(max, Date) zstd = maxIf(toDate(occurred_at), plateau_detected = 1)
          -- Where kind is total: last UTC day with an answer given on a plateau; 1970-01-01: none
      `),
    ],
    {
      engine: layout.engine,
      // Days by weeks first: parts of other weeks do not overlap, and FINAL passes them on as they are, in a third of the
      // time. A learner's days are a granule a week; small ones keep that as fast as it was.
      orderBy: '(tenant, kind, toMonday(day), user_id, skill_id, day)',
      // FINAL passes on what is one part as it is: merged so, whole tables are read in half the time or less. The engine
      // merges parts of like sizes by itself; this has it merge whatever is four hours old, six times a day at most.
      settings: `${rememberingTokens}, index_granularity = 2048, min_age_to_force_merge_seconds = 14400`,
    },
  ),
  [skillDay, skillTotal],
  { unit: ['tenant', 'user_id'], partial: partialSums },
);

export const skillDays = rollupOf(
  defineTable(
    'daily_skill -- One day of one skill, by Redis partition; read it through the view skill_daily',
    [
      ...tenant,
      ...columnsOf('skill_id LowCardinality(String) -- Skill'),
      ...columnsOf('day Date = toDate(occurred_at) -- UTC day of occurred_at'),
      ...columnsOf('partition_id UInt16 -- Redis partition of the learners'),
      ...[...answerSums, ...masterySum].map(summed),
      ...columnsOf(
        'learners AggregateFunction(uniq, String) = uniqState(user_id) -- State of the number of learners',
      ),
    ],
    // A shard's own rows stay with it; this is for those that are computed again.
    { ...layout, orderBy: '(tenant, skill_id, day, partition_id)', shardBy: 'partition_id' },
  ),
  [
    {
      set: ['tenant', 'skill_id', 'day', 'partition_id'],
      where: '1',
      view: {
        name: 'skill_daily',
        comment: 'Answers, learners, accuracy, pace, mean mastery and calibration by skill and UTC day',
        query: `SELECT tenant, skill_id, day, ${sumEach('r', answerSums)},
  ${pace},
  ${gain},
  ${calibration},
  sum(r.mastery_sum) / attempts AS mean_mastery,
  uniqMerge(r.learners) AS learners
FROM daily_skill AS r GROUP BY tenant, skill_id, day`,
      },
    },
  ],
);

export const rollups: readonly Rollup[] = [learnerSums, skillDays];

const monthOfArrival = 'month UInt32 -- Month of received_at, as 202601';

const archivedAnswer = columnsOf(`
  last_answer Tuple(DateTime64(3, 'UTC'), UInt32, Float64) = max((occurred_at, learner_seq, mastery_after))
    -- The day's last answer: occurred_at, learner_seq, mastery_after
`);

/** Rows may be written again, by a run that is repeated: the engine keeps one of a key. */
export const archivedLearnerSkill = defineTable(
  'archived_learner_skill -- One day of one learner on one skill, of answers whose rows were dropped for their age; learner_sums and daily_skill have them too',
  [
    ...columnsOf(`
      ${monthOfArrival}
      partition_id UInt16 -- Redis partition of the learner
    `),
    ...[...tenant, ...user, ...skill, ...day, ...answerSums, ...archivedAnswer, ...masterySum],
  ],
  {
    engine: 'ReplacingMergeTree',
    partitionBy: 'month',
    orderBy: '(tenant, user_id, skill_id, day, month)',
  },
);

/** The same as a rollup of `attempts`, for the INSERT that fills it. */
export const archivedRollup: Summed = {
  keys: { month: 'toYYYYMM(received_at)', partition_id: 'partition_id', ...learnerSums.keys },
  levels: [{ set: ['month', 'partition_id', ...skillDay.set] }],
  sums: expressionsOf([...answerSums, ...archivedAnswer, ...masterySum]),
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

/** Sums of the archive that are not `sum` of its column of the same name. */
const archiveAggregates: Expressions = {
  last_answer: `max(${packed('a.last_answer.1', 'a.last_answer.2', 'a.last_answer.3')})`,
  kind: kindOf('a.day'),
  days: 'groupUniqArray(a.day)',
  plateau_day: 'maxIf(a.day, a.plateau_attempts > 0)',
  learners: 'uniqState(a.user_id)',
};

/** What is archived, as rows of the rollup. @param where a condition over `a` */
export function selectArchived({ keys, sums, levels, partial }: Rollup, where: string): string {
  const columns = [
    ...Object.keys(keys).map((name) => `a.${name} AS ${name}`),
    ...Object.keys(sums).map((name) => {
      const sum = archiveAggregates[name] ?? `sum(a.${name})`;
      return `${whereAsked(partial[name], sum, 'a.day')} AS ${name}`;
    }),
  ];
  return [
    `SELECT ${columns.join(', ')}`,
    `FROM ${archivedDays}`,
    `WHERE ${isArchived} AND ${where}`,
    groupBy(levels, (name) => `a.${name}`),
  ].join('\n');
}
