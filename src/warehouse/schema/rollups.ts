/**
 * Sums of answers, and the archive of answers that retention deleted (ADR 24). A rollup row sums one Redis
 * partition, so that its drain can recompute it without a concurrent writer. A row in `archived_months`,
 * written between the month's sums and the drop, activates the archive. Readers always count each answer
 * once.
 */
import { type Column, deduplicationSettings, defineTable, parseColumns, quote } from '../clickhouse/ddl.js';
import {
  buildGroupBy,
  buildPartialSum,
  defineRollup,
  type Expressions,
  type PartialSums,
  type Rollup,
  type RollupLevel,
  type RollupQuery,
  toExpressions,
} from './rollup.js';

const tenantColumns = parseColumns('tenant LowCardinality(String) -- Owner of the learners');
const userColumns = parseColumns('user_id String zstd -- Learner');
const skillColumns = parseColumns('skill_id LowCardinality(String) zstd -- Skill');
const dayColumns = parseColumns('day Date zstd = local_date -- Local day of the answers');

const toSumColumn = (column: Column): Column => ({
  ...column,
  type: `SimpleAggregateFunction(sum, ${column.type})`,
});
/** Half the bytes, with seven digits: there can be nearly as many rows as answers. */
const toNarrowSum = (column: Column): Column => ({
  ...column,
  type: `SimpleAggregateFunction(sumWithOverflow, ${column.type.replace('64', '32')})`,
  codec: 'ZSTD(1)',
});

/** Times outside this range count as missing (docs/analytics/schema.md). */
const timedCondition = 'time_spent_seconds > 0 AND time_spent_seconds <= 3600';
const seconds = 'assumeNotNull(time_spent_seconds)';

const answerSums = parseColumns(`
  attempts UInt64 = count() -- Number of answers
  correct UInt64 = sum(is_correct) -- Number of correct answers
  timed_attempts UInt64 = countIf(${timedCondition}) -- Answers with a time above 0 and up to 3600 s
  timed_correct UInt64 = countIf(is_correct = 1 AND ${timedCondition}) -- Correct answers of timed_attempts
  timed_seconds Float64 = sumIf(${seconds}, ${timedCondition}) -- Total seconds of timed_attempts
  log_seconds Float64 = sumIf(log(${seconds}), ${timedCondition}) -- Sum of ln(seconds) of timed_attempts, for time norms
  log_seconds_squared Float64 = sumIf(pow(log(${seconds}), 2), ${timedCondition}) -- Sum of ln(seconds) squared of timed_attempts
  mastery_gain Float64 = sum(mastery_after - mastery_before)
    -- Sum of mastery_after - mastery_before; divided by attempts, the velocity per attempt
  predicted_correct Float64 = sum(p_correct) -- Sum of p_correct; close to correct if the model is calibrated
  squared_error Float64 = sum(pow(p_correct - is_correct, 2))
    -- Sum of (p_correct - is_correct) squared; divided by attempts, the Brier score
  plateau_attempts UInt64 = sum(plateau_detected) -- Answers on a plateau
`);
/** Sums over skills subtract these, to count each answer once. 0 in older rows: their questions have one skill. */
const furtherSums = parseColumns(`
  further_attempts UInt64 = countIf(is_first = 0) -- Answers of attempts whose question has another first skill
  further_correct UInt64 = sumIf(is_correct, is_first = 0) -- Correct answers of further_attempts
  further_predicted Float64 = sumIf(p_correct, is_first = 0) -- Sum of p_correct of further_attempts
  further_seconds Float64 = sumIf(${seconds}, is_first = 0 AND ${timedCondition}) -- Part of timed_seconds of further_attempts
`);
export const furtherNames = furtherSums.map(({ name }) => name);
const masterySum = parseColumns('mastery_sum Float64 = sum(mastery_after) -- Sum of mastery_after');
const omitSums = (...names: string[]) => answerSums.filter(({ name }) => !names.includes(name));

/** Packs an answer into one integer, because the engine compares tuples far more slowly. */
const packAnswer = (at: string, seq: string, mastery: string): string =>
  `bitShiftLeft(toUInt128(toUnixTimestamp(${at})), 64) + bitShiftLeft(toUInt128(${seq}), 32) + reinterpretAsUInt32(toFloat32(${mastery}))`;
export const unpackAnswer = (answer: string) => ({
  at: `toDateTime(toUInt32(bitShiftRight(${answer}, 64)), 'UTC')`,
  mastery: `reinterpretAsFloat32(toUInt32(bitAnd(${answer}, 4294967295)))`,
});
const lastAnswer = parseColumns(
  `last_answer SimpleAggregateFunction(max, UInt128) zstd = max(${packAnswer('occurred_at', 'learner_seq', 'mastery_after')})
    -- Last answer of the day: second of occurred_at, learner_seq and mastery_after as Float32, 32 bits each`,
);

const paceColumns = `correct / attempts AS accuracy,
  if(timed_attempts = 0, NULL, timed_seconds / timed_attempts) AS mean_seconds,
  if(timed_seconds = 0, NULL, 60 * timed_correct / timed_seconds) AS correct_per_minute`;
const gainColumns = 'mastery_gain / attempts AS velocity_per_attempt';
const calibrationColumns = `predicted_correct / attempts AS mean_p_correct,
  squared_error / attempts AS brier`;
const listNames = (columns: readonly Column[]): string => columns.map(({ name }) => name).join(', ');
export const buildSums = (alias: string, columns: readonly Column[]): string =>
  columns.map(({ name }) => `sum(${alias}.${name}) AS ${name}`).join(', ');

/** Count an answer under its first skill only. */
const buildOnceColumns = (sum = (column: string): string => column): string =>
  `toUInt64(${sum('attempts')} - ${sum('further_attempts')}) AS answers,
  toUInt64(${sum('correct')} - ${sum('further_correct')}) AS answers_correct,
  ${sum('predicted_correct')} - ${sum('further_predicted')} AS answers_predicted,
  ${sum('timed_seconds')} - ${sum('further_seconds')} AS answers_seconds`;

const rollupLayout = { engine: 'AggregatingMergeTree', settings: deduplicationSettings };

export const skillSums = omitSums('squared_error', 'plateau_attempts', 'log_seconds_squared');
const daySums = omitSums('log_seconds_squared');
const { mastery: lastMastery, at: lastAnswerAt } = unpackAnswer('last_answer');

const buildKindCondition = (kind: string): string => `kind = '${kind}'`;
const kindEnum = "Enum8('day', 'total')";
const buildKind = (day: string): string => `CAST(1 + grouping(${day}), ${quote(kindEnum)})`;
const learnerPartialSums: PartialSums = {
  squared_error: 0,
  plateau_attempts: 0,
  last_answer: 0,
  days: 1,
  plateau_day: 1,
};

// FINAL costs at most a sixth of a GROUP BY.
const skillDayLevel: RollupLevel = {
  groupingSet: ['tenant', 'user_id', 'skill_id', 'day'],
  where: buildKindCondition('day'),
  view: {
    name: 'learner_skill_daily',
    comment: 'Answers, accuracy, pace and mastery by learner, skill and local day',
    query: `SELECT tenant, user_id, skill_id, day, ${listNames(daySums)},
  ${buildOnceColumns()},
  ${paceColumns},
  ${gainColumns},
  ${calibrationColumns},
  greatest(0, least(1, last_mastery - mastery_gain)) AS first_mastery,
  ${lastMastery} AS last_mastery,
  ${lastAnswerAt} AS last_answer_at
FROM learner_sums FINAL WHERE ${buildKindCondition('day')}`,
  },
};

/** Without this level, each query would sum all days. */
const skillTotalLevel: RollupLevel = {
  groupingSet: ['tenant', 'user_id', 'skill_id'],
  where: buildKindCondition('total'),
  view: {
    name: 'learner_skill_total',
    comment: 'Answers, accuracy, pace and velocity by learner and skill, over all days',
    query: `SELECT tenant, user_id, skill_id, ${listNames(skillSums)},
  ${buildOnceColumns()},
  length(days) AS active_days,
  arrayMax(days) AS last_day,
  plateau_day = last_day AS on_plateau,
  ${paceColumns},
  ${gainColumns},
  mastery_gain / active_days AS velocity_per_active_day
FROM learner_sums FINAL WHERE ${buildKindCondition('total')}`,
  },
};

/** Both levels share a table, because an insert costs more per part than per row. */
export const learnerSums = defineRollup(
  defineTable(
    'learner_sums -- Sums of answers by learner and skill, per day and over all days; read the views learner_skill_daily and learner_skill_total',
    [
      ...[...tenantColumns, ...userColumns, ...skillColumns, ...dayColumns],
      ...parseColumns(`
        kind ${kindEnum} zstd = ${buildKind('day')}
          -- day: sums of one day; total: sums of all days, with the day 1970-01-01
      `),
      ...[...daySums, ...furtherSums].map(toNarrowSum),
      ...lastAnswer,
      ...parseColumns(`
        days SimpleAggregateFunction(groupUniqArrayArray, Array(Date)) zstd = groupUniqArray(local_date)
          -- For kind total: local days with answers, unordered
        plateau_day SimpleAggregateFunction(max, Date) zstd = maxIf(local_date, plateau_detected = 1)
          -- For kind total: last local day with an answer on a plateau; 1970-01-01: none
      `),
    ],
    {
      engine: rollupLayout.engine,
      // Weeks first: parts do not overlap, and FINAL takes a third of the time. A learner's read takes one
      // granule per week.
      orderBy: '(tenant, kind, toMonday(day), user_id, skill_id, day)',
      // FINAL reads one merged part in half the time or less. By default, the engine merges only parts of
      // similar sizes.
      settings: `${deduplicationSettings}, index_granularity = 2048, min_age_to_force_merge_seconds = 14400`,
    },
  ),
  [skillDayLevel, skillTotalLevel],
  { repairUnit: ['tenant', 'user_id'], partialSums: learnerPartialSums },
);

export const skillDays = defineRollup(
  defineTable(
    'daily_skill -- Sums of answers by skill, day and Redis partition; read the view skill_daily',
    [
      ...tenantColumns,
      ...parseColumns('skill_id LowCardinality(String) -- Skill'),
      ...parseColumns('day Date = local_date -- Local day of the answers'),
      ...parseColumns('partition_id UInt16 -- Redis partition of the learners'),
      ...[...answerSums, ...furtherSums, ...masterySum].map(toSumColumn),
      ...parseColumns(
        'learners AggregateFunction(uniq, String) = uniqState(user_id) -- Aggregate state of the number of learners',
      ),
    ],
    // Only for repaired rows: other rows stay on the shard of their answers.
    { ...rollupLayout, orderBy: '(tenant, skill_id, day, partition_id)', shardBy: 'partition_id' },
  ),
  [
    {
      groupingSet: ['tenant', 'skill_id', 'day', 'partition_id'],
      where: '1',
      view: {
        name: 'skill_daily',
        comment: 'Answers, learners, accuracy, pace, mean mastery and calibration by skill and local day',
        query: `SELECT tenant, skill_id, day, ${buildSums('r', answerSums)},
  ${buildOnceColumns((column) => `sum(r.${column})`)},
  ${paceColumns},
  ${gainColumns},
  ${calibrationColumns},
  sum(r.mastery_sum) / attempts AS mean_mastery,
  uniqMerge(r.learners) AS learners
FROM daily_skill AS r GROUP BY tenant, skill_id, day`,
      },
    },
  ],
);

export const rollups: readonly Rollup[] = [learnerSums, skillDays];

const arrivalMonth = 'month UInt32 -- Month of received_at, as 202601';

const archivedAnswer = parseColumns(`
  last_answer Tuple(DateTime64(3, 'UTC'), UInt32, Float64) = max((occurred_at, learner_seq, mastery_after))
    -- Last answer of the day: occurred_at, learner_seq, mastery_after
`);

export const archivedLearnerSkill = defineTable(
  'archived_learner_skill -- Daily sums by learner and skill of answers that retention deleted; learner_sums and daily_skill include them',
  [
    ...parseColumns(`
      ${arrivalMonth}
      partition_id UInt16 -- Redis partition of the learner
    `),
    ...[
      ...tenantColumns,
      ...userColumns,
      ...skillColumns,
      ...dayColumns,
      ...answerSums,
      ...furtherSums,
      ...archivedAnswer,
      ...masterySum,
    ],
  ],
  {
    engine: 'ReplacingMergeTree',
    partitionBy: 'month',
    orderBy: '(tenant, user_id, skill_id, day, month)',
  },
);

export const archivedRollup: RollupQuery = {
  keys: { month: 'toYYYYMM(received_at)', partition_id: 'partition_id', ...learnerSums.keys },
  levels: [{ groupingSet: ['month', 'partition_id', ...skillDayLevel.groupingSet] }],
  sums: toExpressions([...answerSums, ...furtherSums, ...archivedAnswer, ...masterySum]),
};

/** Duplicates are harmless: readers take the highest month. */
export const archivedMonths = defineTable(
  'archived_months -- Archived months of arrival: answers are in archived_learner_skill instead of attempts',
  `
    ${arrivalMonth}
    answers UInt64 -- Number of answers that arrived in the month
    archived_at DateTime64(3, 'UTC') DEFAULT now64(3) -- Time of archiving
  `,
  { engine: 'MergeTree', orderBy: 'month', shardBy: 'month' },
);

/** As 202601; 0: none. */
export const lastArchivedMonth = '(SELECT max(month) FROM archived_months)';
export const retainedCondition = `toYYYYMM(received_at) > ${lastArchivedMonth}`;
export const archiveSource = `${archivedLearnerSkill.name} AS a FINAL`;
export const archivedCondition = `a.month <= ${lastArchivedMonth}`;

const archiveAggregates: Expressions = {
  last_answer: `max(${packAnswer('a.last_answer.1', 'a.last_answer.2', 'a.last_answer.3')})`,
  kind: buildKind('a.day'),
  days: 'groupUniqArray(a.day)',
  plateau_day: 'maxIf(a.day, a.plateau_attempts > 0)',
  learners: 'uniqState(a.user_id)',
};

export function buildArchiveSelect({ keys, sums, levels, partialSums }: Rollup, condition: string): string {
  const columns = [
    ...Object.keys(keys).map((name) => `a.${name} AS ${name}`),
    ...Object.keys(sums).map((name) => {
      const sum = archiveAggregates[name] ?? `sum(a.${name})`;
      return `${buildPartialSum(partialSums[name], sum, 'a.day')} AS ${name}`;
    }),
  ];
  return [
    `SELECT ${columns.join(', ')}`,
    `FROM ${archiveSource}`,
    `WHERE ${archivedCondition} AND ${condition}`,
    buildGroupBy(levels, (name) => `a.${name}`),
  ].join('\n');
}
