import { type Column, deduplicationWindow, type Table } from '../clickhouse/table.js';

const probability = (name: string, comment: string): Column => ({
  name,
  type: 'Float64',
  codec: 'ZSTD(1)',
  comment: `${comment}, 0 to 1`,
});

const flag = (name: string, comment: string): Column => ({
  name,
  type: 'UInt8',
  comment: `1 ${comment}, else 0`,
});

const identity: readonly Column[] = [
  { name: 'tenant', type: 'LowCardinality(String)', comment: 'Owner of the learner and of the skill' },
  { name: 'user_id', type: 'String', codec: 'ZSTD(1)', comment: 'Learner, unique within the tenant' },
  { name: 'skill_id', type: 'LowCardinality(String)', comment: 'Skill, unique within the tenant' },
  { name: 'item_id', type: 'String', codec: 'ZSTD(1)', comment: 'Question; empty: not reported' },
  {
    name: 'event_id',
    type: 'String',
    codec: 'ZSTD(1)',
    comment: "Caller's id of the answer, unique within the learner; empty: not reported",
  },
];

const answer: readonly Column[] = [
  flag('is_correct', 'when the answer was correct'),
  {
    name: 'time_spent_seconds',
    type: 'Nullable(Float64)',
    codec: 'ZSTD(1)',
    comment: 'Seconds spent on the question, 0 to 86400; NULL: not reported',
  },
  {
    name: 'confidence_score',
    type: 'Nullable(UInt8)',
    comment: "Learner's own confidence, 1 to 5; NULL: not reported",
  },
  {
    name: 'question_difficulty',
    type: 'Nullable(Float64)',
    codec: 'ZSTD(1)',
    comment: 'Difficulty in logits, -3 to 3; NULL: not reported',
  },
  {
    name: 'occurred_at',
    type: "DateTime64(3, 'UTC')",
    codec: 'Delta, ZSTD(1)',
    comment: 'When the learner answered; days of rollups are days of this time',
  },
  {
    name: 'received_at',
    type: "DateTime64(3, 'UTC')",
    codec: 'Delta, ZSTD(1)',
    comment: 'When the answer arrived here',
  },
];

const tracing: readonly Column[] = [
  {
    name: 'learner_seq',
    type: 'UInt32',
    codec: 'Delta, ZSTD(1)',
    comment: 'Number of the answer within the learner, all skills together, from 1 without gaps',
  },
  probability('mastery_before', 'Mastery of the skill before the answer, after forgetting'),
  probability('mastery_after', 'Mastery of the skill after the answer'),
  probability('p_correct', 'Predicted probability of a correct answer, before it was known'),
  flag('plateau_detected', 'when practice of the skill no longer raises mastery'),
  probability('p_init', 'Mastery before the first answer, as in force'),
  probability('p_learn', 'Probability of learning at one answer, as in force'),
  probability('p_guess', 'Probability of a correct answer without mastery, as in force'),
  probability('p_slip', 'Probability of a wrong answer with mastery, as in force'),
  { name: 'parameters_version', type: 'UInt32', comment: "Version of the skill's four parameters" },
  { name: 'model_version', type: 'UInt32', comment: 'Version of the tracing rules' },
];

const figure = (name: string, comment: string): Column => ({
  name,
  type: 'Float64',
  codec: 'ZSTD(1)',
  comment,
});

/**
 * What migration 2 brought. The defaults are for rows of before: they were counted with the built-in parameters,
 * without any of the other terms.
 */
export const fittedColumns: readonly Column[] = [
  {
    name: 'parameters_source',
    type: "LowCardinality(String) DEFAULT 'default'",
    comment: 'Where the four parameters come from: default, prior (mean of fitted skills), fitted or manual',
  },
  figure('difficulty_shift', 'Shift of guess and slip by the question difficulty, in logits; 0: none'),
  figure('ability_offset', 'Offset that the ability filter took for skill and item, in logits'),
  figure('item_difficulty', 'Difficulty of the question learned from answers, in logits; 0: unknown'),
  figure('rapid_seconds', 'Answers faster than this were rapid, in seconds; 0: not measured yet'),
  figure('log_time_mean', 'Mean of ln(seconds) that the solution time was compared with'),
  figure('log_time_sd', 'Standard deviation of ln(seconds), likewise; 0: not measured yet'),
  flag('rapid', 'when the answer came too fast to be a solution'),
  {
    name: 'efficiency_index',
    type: 'Nullable(Float64)',
    codec: 'ZSTD(1)',
    comment: 'Time-based efficiency on the skill after the answer, 0 to 100; NULL: too few times',
  },
  {
    name: 'recommendation_code',
    type: 'LowCardinality(String)',
    comment: 'What the answer was told to do next; empty: nothing',
  },
];

/** What migration 3 brought. Rows of before were counted without sections, momentum and a baseline in the row. */
export const placedColumns: readonly Column[] = [
  {
    name: 'section',
    type: 'LowCardinality(String)',
    comment: 'Section of the skill, math or rw, as in force; empty: none, it counts half in each',
  },
  {
    name: 'weight',
    type: 'Float64 DEFAULT 1',
    codec: 'ZSTD(1)',
    comment: 'Weight of the skill within its section, as in force',
  },
  {
    name: 'closed_mastery',
    type: 'Nullable(Float64)',
    codec: 'ZSTD(1)',
    comment:
      "On the first answer of a day: mean of the learner's masteries at the close of the day before, for momentum; else NULL",
  },
  {
    name: 'baseline_total',
    type: 'Nullable(UInt16)',
    comment:
      'Total score that progress to a goal is measured from, after the answer; NULL: not enough answers yet',
  },
];

/** What migration 4 brought: with it, rows restore records and event ids byte for byte. */
export const originColumns: readonly Column[] = [
  {
    name: 'event_fingerprint',
    type: 'UInt64',
    codec: 'ZSTD(1)',
    comment:
      'Hash of the event as it was sent, 48 bits, which tells a repeated event from another; 0: it had no id',
  },
  {
    name: 'learner_version',
    type: 'UInt32',
    codec: 'Delta, ZSTD(1)',
    comment:
      "Version of the learner's record that was committed with the answer; answers of one commit share it",
  },
];

/** What migration 7 widened: the place of a row in its entry stands in it. */
export const outboxSeq: Column = {
  name: 'outbox_seq',
  type: 'UInt64',
  comment:
    'Second half of the outbox id: 65536 times the number of the entry in its millisecond, and the place in it',
};

const outbox: readonly Column[] = [
  {
    name: 'partition_id',
    type: 'UInt16',
    comment: "Redis partition of the learner; with the outbox id, the row's key",
  },
  {
    name: 'outbox_ms',
    type: 'UInt64',
    codec: 'Delta, ZSTD(1)',
    comment: 'First half of the outbox id: commit time, Unix milliseconds by the clock of Redis',
  },
  outboxSeq,
];

/**
 * Condition: the row was counted among the accepted answers of its partition (ADR 23). Rows of versions that did not
 * count them have no version of their learner.
 */
export const countedRows = 'learner_version > 0';

/**
 * One row an answer. Partitioned by the month of arrival: callers choose occurred_at and could spread one block
 * over more than the engine's 100 partitions; nobody but this service sets received_at.
 * Written through to the disk, because the outbox in Redis forgets a row as soon as it is here.
 */
export const attempts: Table = {
  name: 'attempts',
  comment: 'One row for every counted answer, never twice',
  engine: 'MergeTree',
  columns: [
    ...identity,
    ...answer,
    ...tracing,
    ...fittedColumns,
    ...placedColumns,
    ...originColumns,
    ...outbox,
  ],
  indexes: ['outbox_time outbox_ms TYPE minmax GRANULARITY 1'],
  partitionBy: 'toYYYYMM(received_at)',
  orderBy: '(tenant, user_id, learner_seq)',
  shardBy: 'cityHash64(tenant, user_id)',
  settings: { ...deduplicationWindow, fsync_after_insert: 1, fsync_part_directory: 1 },
};
