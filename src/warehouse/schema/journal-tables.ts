/**
 * What reaches ClickHouse through the journal. Rows may be inserted again, hence the natural keys: the engine keeps
 * the last row of a key when it merges, and the views take one until then. Written through to the disk, because
 * Redis forgets a row as soon as it is here.
 */
import type { Column, Table } from '../clickhouse/table.js';

/** Of the intervals of the expected share, in per cent. */
export const levels = [50, 80, 95] as const;

const settings = { fsync_after_insert: 1, fsync_part_directory: 1 };

const tenant: Column = { name: 'tenant', type: 'LowCardinality(String)', comment: 'Owner' };
const learner: Column = { name: 'user_id', type: 'String', codec: 'ZSTD(1)', comment: 'Learner' };

const time = (name: string, comment: string): Column => ({
  name,
  type: "DateTime64(3, 'UTC')",
  codec: 'Delta, ZSTD(1)',
  comment,
});

export const goalChanges: Table = {
  name: 'goal_changes',
  comment: 'One row for every time that a learner set or deleted a goal; read it through the view goals',
  engine: 'ReplacingMergeTree',
  columns: [
    tenant,
    learner,
    time('updated_at', 'When, by the clock of the process that took it; later than the change before'),
    {
      name: 'target_score',
      type: 'Nullable(UInt16)',
      comment: 'Total score to reach, 400 to 1600; NULL: the goal was deleted',
    },
    {
      name: 'target_date',
      type: 'Nullable(Date32)',
      comment: 'UTC day to reach it by, at most 2299-12-31; NULL: none',
    },
  ],
  orderBy: '(tenant, user_id, updated_at)',
  shardBy: 'cityHash64(tenant, user_id)',
  settings,
};

const manual = (name: string, comment: string): Column => ({
  name,
  type: 'Nullable(Float64)',
  comment: `${comment}, 0 to 1, set by hand; NULL: fitted, or the default`,
});

export const catalogueColumns: readonly Column[] = [
  { name: 'name', type: 'Nullable(String)', comment: 'For people; NULL: they see the id' },
  {
    name: 'section',
    type: 'LowCardinality(String)',
    comment: 'math or rw; empty: none, the skill counts half in each',
  },
  {
    name: 'weight',
    type: 'Float64',
    comment: 'Weight of the skill within its section; 0: taken off the catalogue',
  },
  manual('p_init', 'Mastery before the first answer'),
  manual('p_learn', 'Probability of learning at one answer'),
  manual('p_guess', 'Probability of a correct answer without mastery'),
  manual('p_slip', 'Probability of a wrong answer with mastery'),
];

export const skillChanges: Table = {
  name: 'skill_changes',
  comment:
    "One row for every change of a skill in a tenant's catalogue; read it through the view skill_catalogue",
  engine: 'ReplacingMergeTree',
  columns: [
    tenant,
    { name: 'skill_id', type: 'String', comment: 'Skill' },
    { name: 'revision', type: 'UInt32', comment: "Number of the change of the tenant's catalogue, from 1" },
    time('updated_at', 'When'),
    ...catalogueColumns,
  ],
  orderBy: '(tenant, skill_id, updated_at, revision)',
  shardBy: 'cityHash64(tenant, skill_id)',
  settings,
};

const figure = (name: string, comment: string): Column => ({
  name,
  type: 'Float64',
  codec: 'ZSTD(1)',
  comment,
});

const score = (name: string, comment: string): Column => ({ name, type: 'UInt16', comment });

/** The columns of one kind of score: both sections and their sum. */
const scores = (name: string, comment: string): Column[] => [
  score(`${name}_math`, `Math score ${comment}, 200 to 800`),
  score(`${name}_rw`, `Reading and writing score ${comment}, 200 to 800`),
  score(`${name}_total`, `Total score ${comment}, 400 to 1600`),
];

const intervals: readonly Column[] = ['math', 'rw', 'total'].flatMap((name) => [
  score(`${name}_low`, `Low end of the interval of predicted_${name}, at confidence_level`),
  score(`${name}_high`, `High end of it`),
]);

const reach = (side: 'below' | 'above', level: number): Column =>
  figure(
    `${side}_${level}`,
    `How far the ${level} % interval of the share reaches ${side} expected_share on that scale, in units of sqrt(share_sd squared + 1 / (4 * answers))`,
  );

/** What analysts score forecasts by, see forecast-views.ts. */
const accuracy: readonly Column[] = [
  figure('expected_share', 'Share of right answers expected over the horizon, 0 to 1'),
  figure(
    'share_sd',
    'Standard deviation of the share on the scale asin(sqrt(share)), without the chance of single answers',
  ),
  ...levels.map((level) => reach('below', level)),
  ...levels.map((level) => reach('above', level)),
];

/** By the month in which it was made: whole months can be skipped, and dropped. */
export const servedForecasts: Table = {
  name: 'served_forecasts',
  comment: 'One row for every forecast that was served; read it through the view forecasts',
  engine: 'ReplacingMergeTree',
  columns: [
    tenant,
    learner,
    time('made_at', 'When it was made'),
    { name: 'forecast_days', type: 'UInt16', comment: 'Horizon in days, 1 to 365' },
    { name: 'confidence_level', type: 'Float64', comment: 'Level of the score intervals, 0.5 to 0.99' },
    { name: 'learner_seq', type: 'UInt32', comment: "The learner's counted answers until then" },
    ...scores('current', 'when it was made'),
    ...scores('predicted', 'at the horizon'),
    ...intervals,
    {
      name: 'target_score',
      type: 'Nullable(UInt16)',
      comment: 'Goal that was tracked, 400 to 1600; NULL: none',
    },
    {
      name: 'goal_probability',
      type: 'Nullable(Float64)',
      codec: 'ZSTD(1)',
      comment: 'Probability of meeting it, 0 to 1; NULL: no goal',
    },
    { name: 'model_version', type: 'UInt32', comment: 'Version of the rules' },
    {
      name: 'tenant_model_version',
      type: 'UInt32',
      comment: "Version of the tenant's fitted model; 0: the defaults",
    },
    ...accuracy,
  ],
  partitionBy: 'toYYYYMM(made_at)',
  orderBy: '(tenant, user_id, made_at, forecast_days, confidence_level)',
  shardBy: 'cityHash64(tenant, user_id)',
  settings,
};
