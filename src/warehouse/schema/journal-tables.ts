/**
 * What reaches ClickHouse through the journal, and the views on what of it is in force. Rows may be inserted again, hence
 * the natural keys: the engine keeps the last row of a key when it merges, and the views take one until then.
 */
import { type Column, columnsOf, defineTable, type Table, type View } from '../clickhouse/table.js';

/** Of the intervals of the expected share, in per cent. */
export const levels = [50, 80, 95] as const;

const engine = 'ReplacingMergeTree';

export const goalChanges = defineTable(
  'goal_changes',
  'One row for every time that a learner set or deleted a goal; read it through the view goals',
  `
    tenant LowCardinality(String) -- Owner
    user_id String CODEC(ZSTD(1)) -- Learner
    updated_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1))
      -- When, by the clock of the process that took it; later than the change before
    target_score Nullable(UInt16) -- Total score to reach, 400 to 1600; NULL: the goal was deleted
    target_date Nullable(Date32) -- UTC day to reach it by, at most 2299-12-31; NULL: none
  `,
  { engine, orderBy: '(tenant, user_id, updated_at)' },
);

const byHand = '0 to 1, set by hand; NULL: fitted, or the default';

const catalogueColumns = columnsOf(`
  name Nullable(String) -- For people; NULL: they see the id
  section LowCardinality(String) -- math or rw; empty: none, the skill counts half in each
  weight Float64 -- Weight of the skill within its section; 0: taken off the catalogue
  p_init Nullable(Float64) -- Mastery before the first answer, ${byHand}
  p_learn Nullable(Float64) -- Probability of learning at one answer, ${byHand}
  p_guess Nullable(Float64) -- Probability of a correct answer without mastery, ${byHand}
  p_slip Nullable(Float64) -- Probability of a wrong answer with mastery, ${byHand}
`);

export const skillChanges = defineTable(
  'skill_changes',
  "One row for every change of a skill in a tenant's catalogue; read it through the view skill_catalogue",
  [
    ...columnsOf(`
      tenant LowCardinality(String) -- Owner
      skill_id String -- Skill
      revision UInt32 -- Number of the change of the tenant's catalogue, from 1
      updated_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)) -- When
    `),
    ...catalogueColumns,
  ],
  { engine, orderBy: '(tenant, skill_id, updated_at, revision)', shardBy: 'cityHash64(tenant, skill_id)' },
);

/** The columns of one kind of score: both sections and their sum. */
const scores = (name: string, when: string): string => `
    ${name}_math UInt16 -- Math score ${when}, 200 to 800
    ${name}_rw UInt16 -- Reading and writing score ${when}, 200 to 800
    ${name}_total UInt16 -- Total score ${when}, 400 to 1600`;

const interval = (name: string): string => `
    ${name}_low UInt16 -- Low end of the interval of predicted_${name}, at confidence_level
    ${name}_high UInt16 -- High end of it`;

/** What analysts score forecasts by, see forecast-views.ts. */
const reach = (side: 'below' | 'above'): string =>
  levels
    .map(
      (level) => `
    ${side}_${level} Float64 CODEC(ZSTD(1))
      -- How far the ${level} % interval of the share reaches ${side} expected_share on that scale, in units of
      -- sqrt(share_sd squared + 1 / (4 * answers))`,
    )
    .join('');

/** By the month in which it was made: whole months can be skipped, and dropped. */
export const servedForecasts = defineTable(
  'served_forecasts',
  'One row for every forecast that was served; read it through the view forecasts',
  `
    tenant LowCardinality(String) -- Owner
    user_id String CODEC(ZSTD(1)) -- Learner
    made_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)) -- When it was made
    forecast_days UInt16 -- Horizon in days, 1 to 365
    confidence_level Float64 -- Level of the score intervals, 0.5 to 0.99
    learner_seq UInt32 -- The learner's counted answers until then
    ${scores('current', 'when it was made')}
    ${scores('predicted', 'at the horizon')}
    ${['math', 'rw', 'total'].map(interval).join('')}
    target_score Nullable(UInt16) -- Goal that was tracked, 400 to 1600; NULL: none
    goal_probability Nullable(Float64) CODEC(ZSTD(1)) -- Probability of meeting it, 0 to 1; NULL: no goal
    model_version UInt32 -- Version of the rules
    tenant_model_version UInt32 -- Version of the tenant's fitted model; 0: the defaults
    expected_share Float64 CODEC(ZSTD(1)) -- Share of right answers expected over the horizon, 0 to 1
    share_sd Float64 CODEC(ZSTD(1))
      -- Standard deviation of the share on the scale asin(sqrt(share)), without the chance of single answers
    ${reach('below')}
    ${reach('above')}
  `,
  {
    engine,
    partitionBy: 'toYYYYMM(made_at)',
    orderBy: '(tenant, user_id, made_at, forecast_days, confidence_level)',
  },
);

/** Columns of a table as a view shows them; all of them where none is named. */
export const shownColumns = ({ columns }: Table, ...names: string[]): Omit<Column, 'codec'>[] =>
  columns
    .filter((column) => names.length === 0 || names.includes(column.name))
    .map(({ name, type, comment }) => ({ name, type, comment }));

/** A row that was inserted twice is the same twice, and a goal's time grows with every change. */
export const goals: View = {
  name: 'goals',
  comment: 'The goal in force of every learner who has one',
  columns: [
    ...shownColumns(goalChanges, 'tenant', 'user_id'),
    { name: 'target_score', type: 'UInt16', comment: 'Total score to reach, 400 to 1600' },
    ...shownColumns(goalChanges, 'target_date', 'updated_at'),
  ],
  query: `SELECT tenant, user_id, assumeNotNull(last.1) AS target_score, last.2 AS target_date, last_at AS updated_at
FROM (
  SELECT tenant, user_id, argMax((target_score, target_date), updated_at) AS last, max(updated_at) AS last_at
  FROM goal_changes GROUP BY tenant, user_id
) WHERE last.1 IS NOT NULL`,
};

const entry = ['updated_at', ...catalogueColumns.map(({ name }) => name)];

export const skillCatalogue: View = {
  name: 'skill_catalogue',
  comment: "The entry in force of every skill that a tenant's catalogue has",
  columns: shownColumns(skillChanges),
  query: `SELECT tenant, skill_id, last.${entry.length + 1} AS revision, ${entry.map((name, i) => `last.${i + 1} AS ${name}`).join(', ')}
FROM (
  SELECT tenant, skill_id, argMax((${entry.join(', ')}, revision), (updated_at, revision)) AS last
  FROM skill_changes GROUP BY tenant, skill_id
) WHERE weight > 0`,
};

export const forecasts: View = {
  name: 'forecasts',
  comment: 'Every forecast that was served, once',
  columns: shownColumns(servedForecasts),
  query: `SELECT ${servedForecasts.columns.map(({ name }) => name).join(', ')} FROM served_forecasts FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1`,
};
