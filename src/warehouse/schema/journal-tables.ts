/** Inserts can be repeated: queries select one row per key. */
import { defineTable, parseColumns } from '../clickhouse/ddl.js';

const engine = 'ReplacingMergeTree';

export const goalChanges = defineTable(
  'goal_changes -- Changes and deletions of goals, one row each; the view goals shows the current goals',
  `
    tenant LowCardinality(String) -- Owner
    user_id String zstd -- Learner
    updated_at DateTime64(3, 'UTC') delta
      -- Time of the change, clock of the process that accepted it; increases with every change
    target_score Nullable(UInt16) -- Total score to reach, 400 to 1600; NULL: the goal was deleted
    target_date Nullable(Date32) -- Local day by which to reach the score, at most 2299-12-31; NULL: none
  `,
  { engine, orderBy: '(tenant, user_id, updated_at)' },
);

const manualRange = '0 to 1, set manually; NULL: fitted or default';

export const catalogueColumns = parseColumns(`
  name Nullable(String) -- Display name; NULL: the id is displayed
  section LowCardinality(String) -- math or rw; empty: none, the skill counts half in each
  weight Float64 -- Weight of the skill within its section; 0: removed from the catalogue
  p_init Nullable(Float64) -- Mastery before the first answer, ${manualRange}
  p_learn Nullable(Float64) -- Probability of learning at one answer, ${manualRange}
  p_guess Nullable(Float64) -- Probability of a correct answer without mastery, ${manualRange}
  p_slip Nullable(Float64) -- Probability of a wrong answer with mastery, ${manualRange}
  p_forget Nullable(Float64) -- Probability of losing mastery at one answer, ${manualRange}
`);

export const skillChanges = defineTable(
  "skill_changes -- Changes of skills in a tenant's catalogue, one row each; the view skill_catalogue shows the current entries",
  [
    ...parseColumns(`
      tenant LowCardinality(String) -- Owner
      skill_id String -- Skill
      revision UInt32 -- Number of the change within the tenant's catalogue, from 1
      updated_at DateTime64(3, 'UTC') delta -- Time of the change
    `),
    ...catalogueColumns,
  ],
  { engine, orderBy: '(tenant, skill_id, updated_at, revision)', shardBy: 'cityHash64(tenant, skill_id)' },
);

/** In percent. */
export const intervalLevels = [50, 80, 95] as const;

const buildScoreColumns = (name: string, when: string): string => `
    ${name}_math UInt16 -- Math score ${when}, 200 to 800
    ${name}_rw UInt16 -- Reading and writing score ${when}, 200 to 800
    ${name}_total UInt16 -- Total score ${when}, 400 to 1600`;

const buildIntervalColumns = (name: string): string => `
    ${name}_low UInt16 -- Lower end of the interval of predicted_${name}, at confidence_level
    ${name}_high UInt16 -- Upper end of the interval of predicted_${name}, at confidence_level`;

const buildReachColumn = (side: 'below' | 'above', level: number): string => `
    ${side}_${level} Float64 zstd
      -- Distance from expected_share to the end of the ${level} % interval ${side} it, on the scale asin(sqrt(share)),
      -- in units of sqrt(share_sd squared + 1 / (4 * answers))`;

/** Partitioned by month, so that retention can drop whole months. */
export const servedForecasts = defineTable(
  'served_forecasts -- Served forecasts, possibly repeated; the view forecasts shows each one once',
  `
    tenant LowCardinality(String) -- Owner
    user_id String zstd -- Learner
    made_at DateTime64(3, 'UTC') delta -- Time of the forecast
    forecast_days UInt16 -- Horizon in days, 1 to 365
    confidence_level Float64 -- Level of the score intervals, 0.5 to 0.99
    learner_seq UInt32 -- Counted answers of the learner at that time
    ${buildScoreColumns('current', 'at the time of the forecast')}
    ${buildScoreColumns('predicted', 'at the horizon')}
    ${['math', 'rw', 'total'].map(buildIntervalColumns).join('')}
    target_score Nullable(UInt16) -- Goal of the learner at that time, 400 to 1600; NULL: none
    goal_probability Nullable(Float64) zstd -- Probability of reaching the goal, 0 to 1; NULL: no goal
    model_version UInt32 -- Version of the rules
    tenant_model_version UInt32 -- Version of the tenant's fitted model; 0: the defaults
    expected_share Float64 zstd -- Expected share of correct answers over the horizon, 0 to 1
    share_sd Float64 zstd
      -- Standard deviation of the share on the scale asin(sqrt(share)), without the randomness of single answers
    ${intervalLevels.map((level) => buildReachColumn('below', level)).join('')}
    ${intervalLevels.map((level) => buildReachColumn('above', level)).join('')}
    calibration_below Float64 DEFAULT 1 zstd -- Recalibration factor, included in the distances below; 1: none
    calibration_above Float64 DEFAULT 1 zstd -- Recalibration factor, included in the distances above; 1: none
    accuracy_cases UInt32 DEFAULT 0 -- Earlier forecasts that a fit derived the distances from; 0: the defaults
  `,
  {
    engine,
    partitionBy: 'toYYYYMM(made_at)',
    orderBy: '(tenant, user_id, made_at, forecast_days, confidence_level)',
  },
);

export const retractedAnswers = defineTable(
  'taken_back -- Retracted answers; a row may exist twice until parts are merged',
  `
    tenant LowCardinality(String) -- Owner of the learner
    user_id String zstd -- Learner
    event_id String zstd -- Id of the answer from the caller
    skill_id LowCardinality(String) -- Skill of the answer
    learner_seq UInt32 -- Number of the answer before its retraction, which reduced the numbers of later answers by 1
    received_at DateTime64(3, 'UTC') delta -- Time of arrival of the answer
    taken_back_at DateTime64(3, 'UTC') delta -- Time of the retraction, clock of Redis
    first_answer String zstd
      -- Result for a repeat of its event, in base64 (src/store/learners/event-ids.ts); empty: the event id had expired
  `,
  { engine, orderBy: '(tenant, user_id, taken_back_at, event_id)' },
);

/** Read with FINAL: the last row of an endpoint counts. */
export const webhooks = defineTable(
  'webhooks -- Webhook endpoints without their secrets, for rebuilds of Redis',
  `
    tenant LowCardinality(String) -- Owner
    webhook_id String -- Id of the endpoint
    updated_at DateTime64(3, 'UTC') -- Time of the change; increases with every change
    url String -- Receives the messages; empty: the endpoint was deleted
    event_types String -- Subscribed event types, separated by spaces; *: all
    description Nullable(String) -- Description from the tenant; NULL: none
    disabled_reason LowCardinality(String) -- Reason why the endpoint is disabled; empty: enabled
    created_at DateTime64(3, 'UTC') -- Time of creation
  `,
  { engine: `${engine}(updated_at)`, orderBy: '(tenant, webhook_id)', shardBy: 'cityHash64(tenant)' },
);
