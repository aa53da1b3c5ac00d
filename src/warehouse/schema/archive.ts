/**
 * What stays of answers whose rows were dropped for their age (ADR 24): their daily sums by learner, and the month up to
 * which everything is archived.
 *
 * The rollups keep what they have. Who computes them again adds the archived sums to those of the kept rows. One row in
 * `archived_months`, written after the month's sums and before its rows are dropped, makes the sums count: a reader sees
 * each answer once, wherever an archiving ends.
 */
import { columnsOf, defineTable } from '../clickhouse/table.js';
import { learnerSkill, type Rollup } from './rollups.js';

const monthOfArrival = 'month UInt32 -- Month of received_at, as 202601';

/** Rows may be written again, by a run that is repeated: the engine keeps one of a key. */
export const archivedLearnerSkill = defineTable(
  'archived_learner_skill',
  'One day of one learner on one skill, of answers whose rows were dropped for their age; daily_learner_skill and daily_skill have them too',
  [
    ...columnsOf(`
      ${monthOfArrival}
      partition_id UInt16 -- Redis partition of the learner
    `),
    ...learnerSkill.table.columns.map((column) => ({ ...column, type: plainType(column.type) })),
    ...columnsOf('mastery_sum Float64 -- Sum of mastery_after'),
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
  'archived_months',
  'Months of arrival whose answers are in archived_learner_skill and no longer in attempts',
  `
    ${monthOfArrival}
    answers UInt64 -- Answers that arrived in it
    archived_at DateTime64(3, 'UTC') DEFAULT now64(3) -- When
  `,
  { engine: 'MergeTree', orderBy: 'month', shardBy: 'month' },
);

/** A learner's last snapshot replaces those before; until parts are merged, only FINAL says which it is. */
export const learnerSnapshots = defineTable(
  'learner_snapshots',
  'State of a learner after the last of the answers that are no longer in attempts; read it with FINAL',
  `
    tenant LowCardinality(String) -- Owner
    user_id String CODEC(ZSTD(1)) -- Learner
    partition_id UInt16 -- Redis partition of the learner
    learner_seq UInt32 -- Number of the last answer that the state has; rows up to it may be in attempts still
    month UInt32 -- Month of arrival, as 202601, with which it was made
    state String CODEC(ZSTD(1)) -- The learner's records in Redis, as JSON with a version (src/store/learners/learner-codec.ts)
  `,
  { engine: 'ReplacingMergeTree(learner_seq)', orderBy: '(tenant, user_id)' },
);

/** Always empty: no version writes it any more. Proofs of erasures name it, those that callers keep too. */
export const learnerBaselines = defineTable(
  'learner_baselines',
  'Baseline of a learner whose rows have one of earlier formulas: taken anew when Redis was restored by later ones; read it with FINAL',
  `
    tenant LowCardinality(String) -- Owner
    user_id String CODEC(ZSTD(1)) -- Learner
    partition_id UInt16 -- Redis partition of the learner
    model_version UInt32 -- Version of the rules by which it was taken
    baseline_total UInt16
      -- Total score that progress to a goal is measured from, 400 to 1600: where the learner stood at the 20th answer
    taken_at DateTime64(3, 'UTC') -- When it was taken
  `,
  { engine: 'ReplacingMergeTree(taken_at)', orderBy: '(tenant, user_id, model_version)' },
);

/** Scalar: the last archived month as 202601; 0: none. */
export const archivedThrough = '(SELECT max(month) FROM archived_months)';
/** Condition over `attempts`: rows that count themselves, and not by what is archived of their month. */
export const keptRows = `toYYYYMM(received_at) > ${archivedThrough}`;
/** What counts of the archive; readers name its columns by `a`. */
export const archivedDays = `${archivedLearnerSkill.name} AS a FINAL`;
export const isArchived = `a.month <= ${archivedThrough}`;

/** Aggregates over the archive that are no sums. */
const aggregates: Readonly<Record<string, string>> = {
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

/** Of a column that adds itself up when parts are merged. */
function plainType(type: string): string {
  return type.replace(/^SimpleAggregateFunction\(\w+, (.*)\)$/, '$1');
}
