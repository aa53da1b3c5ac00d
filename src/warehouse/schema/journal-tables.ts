/** Inserts can be repeated: queries select one row per key. */
import { columnsOf, defineTable } from '../clickhouse/ddl.js';

const engine = 'ReplacingMergeTree';

export const goalChanges = defineTable(
  'goal_changes -- One row for every time that a learner set or deleted a goal; read it through the view goals',
  `
    tenant LowCardinality(String) -- Owner
    user_id String zstd -- Learner
    updated_at DateTime64(3, 'UTC') delta
      -- When, by the clock of the process that took it; later than the change before
    target_score Nullable(UInt16) -- Total score to reach, 400 to 1600; NULL: the goal was deleted
    target_date Nullable(Date32) -- UTC day to reach it by, at most 2299-12-31; NULL: none
  `,
  { engine, orderBy: '(tenant, user_id, updated_at)' },
);

const byHand = '0 to 1, set by hand; NULL: fitted, or the default';

export const catalogueColumns = columnsOf(`
  name Nullable(String) -- For people; NULL: they see the id
  section LowCardinality(String) -- math or rw; empty: none, the skill counts half in each
  weight Float64 -- Weight of the skill within its section; 0: taken off the catalogue
  p_init Nullable(Float64) -- Mastery before the first answer, ${byHand}
  p_learn Nullable(Float64) -- Probability of learning at one answer, ${byHand}
  p_guess Nullable(Float64) -- Probability of a correct answer without mastery, ${byHand}
  p_slip Nullable(Float64) -- Probability of a wrong answer with mastery, ${byHand}
  p_forget Nullable(Float64) -- Probability of losing mastery at one answer, ${byHand}
`);

export const skillChanges = defineTable(
  "skill_changes -- One row for every change of a skill in a tenant's catalogue; read it through the view skill_catalogue",
  [
    ...columnsOf(`
      tenant LowCardinality(String) -- Owner
      skill_id String -- Skill
      revision UInt32 -- Number of the change of the tenant's catalogue, from 1
      updated_at DateTime64(3, 'UTC') delta -- When
    `),
    ...catalogueColumns,
  ],
  { engine, orderBy: '(tenant, skill_id, updated_at, revision)', shardBy: 'cityHash64(tenant, skill_id)' },
);

/** In percent. */
export const levels = [50, 80, 95] as const;

const scores = (name: string, when: string): string => `
    ${name}_math UInt16 -- Math score ${when}, 200 to 800
    ${name}_rw UInt16 -- Reading and writing score ${when}, 200 to 800
    ${name}_total UInt16 -- Total score ${when}, 400 to 1600`;

const interval = (name: string): string => `
    ${name}_low UInt16 -- Low end of the interval of predicted_${name}, at confidence_level
    ${name}_high UInt16 -- High end of it`;

const reach = (side: 'below' | 'above', level: number): string => `
    ${side}_${level} Float64 zstd
      -- How far the ${level} % interval of the share reaches ${side} expected_share on that scale, in units of
      -- sqrt(share_sd squared + 1 / (4 * answers))`;

/** Partitioned by month, so that retention can drop whole months. */
export const servedForecasts = defineTable(
  'served_forecasts -- One row for every forecast that was served; read it through the view forecasts',
  `
    tenant LowCardinality(String) -- Owner
    user_id String zstd -- Learner
    made_at DateTime64(3, 'UTC') delta -- When it was made
    forecast_days UInt16 -- Horizon in days, 1 to 365
    confidence_level Float64 -- Level of the score intervals, 0.5 to 0.99
    learner_seq UInt32 -- The learner's counted answers until then
    ${scores('current', 'when it was made')}
    ${scores('predicted', 'at the horizon')}
    ${['math', 'rw', 'total'].map(interval).join('')}
    target_score Nullable(UInt16) -- Goal that was tracked, 400 to 1600; NULL: none
    goal_probability Nullable(Float64) zstd -- Probability of meeting it, 0 to 1; NULL: no goal
    model_version UInt32 -- Version of the rules
    tenant_model_version UInt32 -- Version of the tenant's fitted model; 0: the defaults
    expected_share Float64 zstd -- Share of right answers expected over the horizon, 0 to 1
    share_sd Float64 zstd
      -- Standard deviation of the share on the scale asin(sqrt(share)), without the chance of single answers
    ${levels.map((level) => reach('below', level)).join('')}
    ${levels.map((level) => reach('above', level)).join('')}
  `,
  {
    engine,
    partitionBy: 'toYYYYMM(made_at)',
    orderBy: '(tenant, user_id, made_at, forecast_days, confidence_level)',
  },
);

export const takenBack = defineTable(
  'taken_back -- One row for every answer that was taken back; it may stand here twice until parts are merged',
  `
    tenant LowCardinality(String) -- Owner of the learner
    user_id String zstd -- Learner
    event_id String zstd -- Caller's id of the answer
    skill_id LowCardinality(String) -- Skill that it was on
    learner_seq UInt32 -- Number that it had within the learner; later answers have one less since
    received_at DateTime64(3, 'UTC') delta -- When it had arrived
    taken_back_at DateTime64(3, 'UTC') delta -- When it was taken back, by the clock of Redis
    first_answer String zstd
      -- What a repeat of its event is told, in base64 (src/store/learners/event-ids.ts); empty: its id was forgotten
  `,
  { engine, orderBy: '(tenant, user_id, taken_back_at, event_id)' },
);

/** Read with FINAL: the last row of an endpoint counts. */
export const webhooks = defineTable(
  'webhooks -- Endpoints of webhooks without their secrets; a rebuild needs them',
  `
    tenant LowCardinality(String) -- Owner
    webhook_id String -- Endpoint
    updated_at DateTime64(3, 'UTC') -- When it was changed; later than the change before
    url String -- Where its messages go; empty: it was deleted
    event_types String -- Types of events that it asks for, separated by spaces; *: all
    description Nullable(String) -- For people; NULL: none
    disabled_reason LowCardinality(String) -- Why it is sent nothing; empty: it is enabled
    created_at DateTime64(3, 'UTC') -- When it was created
  `,
  { engine: `${engine}(updated_at)`, orderBy: '(tenant, webhook_id)', shardBy: 'cityHash64(tenant)' },
);
