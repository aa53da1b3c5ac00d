/** Rows that may be inserted again have a natural key: merges keep the last row of a key, and readers select one until then. */
import { columnsOf, defineTable, rememberingTokens } from '../clickhouse/ddl.js';

const engine = 'ReplacingMergeTree';

/** Accepted answers of a partition (ADR 23). */
export const countedRows = 'learner_version > 0';

/**
 * By month of arrival, which only this service sets. Callers choose occurred_at and could spread a block over more than the
 * engine's 100 partitions.
 */
export const attempts = defineTable(
  'attempts -- One row for every counted answer, never twice',
  `
    tenant LowCardinality(String) -- Owner of the learner and of the skill
    user_id String zstd -- Learner, unique within the tenant
    skill_id LowCardinality(String) -- Skill, unique within the tenant
    item_id String zstd -- Question; empty: not reported
    event_id String zstd -- Caller's id of the answer, unique within the learner; empty: not reported
    is_correct UInt8 -- 1 when the answer was correct, else 0
    time_spent_seconds Nullable(Float64) zstd -- Seconds spent on the question, 0 to 86400; NULL: not reported
    confidence_score Nullable(UInt8) -- Learner's own confidence, 1 to 5; NULL: not reported
    question_difficulty Nullable(Float64) zstd -- Difficulty in logits, -3 to 3; NULL: not reported
    occurred_at DateTime64(3, 'UTC') delta -- When the learner answered; days of rollups are days of this time
    received_at DateTime64(3, 'UTC') delta -- When the answer arrived here
    learner_seq UInt32 delta -- Number of the answer within the learner, all skills together, from 1 without gaps
    mastery_before Float64 zstd -- Mastery of the skill before the answer, after forgetting, 0 to 1
    mastery_after Float64 zstd -- Mastery of the skill after the answer, 0 to 1
    p_correct Float64 zstd -- Predicted probability of a correct answer, before it was known, 0 to 1
    plateau_detected UInt8 -- 1 when practice of the skill no longer raises mastery, else 0
    p_init Float64 zstd -- Mastery before the first answer, as in force, 0 to 1
    p_learn Float64 zstd -- Probability of learning at one answer, as in force, 0 to 1
    p_guess Float64 zstd -- Probability of a correct answer without mastery, as in force, 0 to 1
    p_slip Float64 zstd -- Probability of a wrong answer with mastery, as in force, 0 to 1
    p_forget Float64 DEFAULT 0 zstd -- Probability of losing mastery at one answer, as in force, 0 to 1
    parameters_version UInt32 -- Version of the skill's parameters
    model_version UInt32 -- Version of the tracing rules
    parameters_source LowCardinality(String) DEFAULT 'default'
      -- Where the parameters come from: default, prior (mean of fitted skills), fitted or manual
    difficulty_shift Float64 zstd -- Shift of guess and slip by the question difficulty, in logits; 0: none
    ability_offset Float64 zstd -- Offset that the ability filter took for skill and item, in logits
    item_difficulty Float64 zstd -- Difficulty of the question learned from answers, in logits; 0: unknown
    rapid_seconds Float64 zstd -- Answers faster than this were rapid, in seconds; 0: not measured yet
    log_time_mean Float64 zstd -- Mean of ln(seconds) that the solution time was compared with
    log_time_sd Float64 zstd -- Standard deviation of ln(seconds), likewise; 0: not measured yet
    accuracy_norm Float64 DEFAULT 0.75 zstd -- Share of correct answers that the accuracy was compared with
    rapid UInt8 -- 1 when the answer came too fast to be a solution, else 0
    efficiency_index Nullable(Float64) zstd
      -- Accuracy and time on the skill after the answer, 0 to 100; NULL: too few times, or many rapid answers
    recommendation_code LowCardinality(String) -- What the answer was told to do next; empty: nothing
    section LowCardinality(String) -- Section of the skill, math or rw, as in force; empty: none, it counts half in each
    weight Float64 DEFAULT 1 zstd -- Weight of the skill within its section, as in force
    closed_mastery Nullable(Float64) zstd
      -- On the first answer of a day: mean of the learner's masteries at the close of the day before, for momentum;
      -- else NULL
    baseline_total Nullable(UInt16)
      -- Total score that progress to a goal is measured from, after the answer; NULL: not enough answers yet
    event_fingerprint UInt64 zstd
      -- Hash of the event as it was sent, 48 bits, which tells a repeated event from another; 0: it had no id
    learner_version UInt32 delta
      -- Version of the learner's record that was committed with the answer; answers of one commit share it
    partition_id UInt16 -- Redis partition of the learner; with the outbox id, the row's key
    outbox_ms UInt64 delta -- First half of the outbox id: commit time, Unix milliseconds by the clock of Redis
    outbox_seq UInt64
      -- Second half of the outbox id: 65536 times the number of the entry in its millisecond, and the place in it
  `,
  {
    engine: 'MergeTree',
    indexes: [
      'outbox_time outbox_ms TYPE minmax GRANULARITY 1',
      // For lookups without the learner.
      'event_ids event_id TYPE bloom_filter GRANULARITY 1',
    ],
    partitionBy: 'toYYYYMM(received_at)',
    orderBy: '(tenant, user_id, learner_seq)',
    settings: rememberingTokens,
  },
);

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

/** Intervals of the expected share, in per cent. */
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

/** By month: queries skip and retention drops whole months. */
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

export const erasures = defineTable(
  'erasures -- One row for every learner who was erased, without saying whom; possibly twice until parts are merged',
  `
    tenant LowCardinality(String) -- Owner of the learner
    erasure_id String -- As the caller was told
    requested_at DateTime64(3, 'UTC') delta -- When it was asked for
    done_at DateTime64(3, 'UTC') delta -- When nothing was left
    receipt String zstd -- Counts and proving query, as JSON
  `,
  { engine, orderBy: '(tenant, erasure_id)', shardBy: 'cityHash64(erasure_id)' },
);

export const deployments = defineTable(
  'deployments -- What Redis alone would know of the deployment; a rebuild needs it',
  `
    deployment_id String -- Made at the first start
    partitions UInt16 -- Number of partitions of Redis, for ever the same
    created_at DateTime64(3, 'UTC') -- When it started for the first time
    recorded_at DateTime64(3, 'UTC') -- When this row was written
  `,
  { engine, orderBy: '(deployment_id, recorded_at)', shardBy: 'cityHash64(deployment_id)' },
);

export const apiKeys = defineTable(
  'api_keys -- One row for every change of an API key; a rebuild needs them. No key can be found out from it',
  `
    tenant LowCardinality(String) -- Whose answers the key reaches
    key_id String -- Names the key
    updated_at DateTime64(3, 'UTC') -- When this row was written
    requests_per_minute Nullable(UInt32) -- Quota; NULL: none
    scopes String -- What it may do, separated by commas
    created_at DateTime64(3, 'UTC') -- When it was created
    revoked_at Nullable(DateTime64(3, 'UTC')) -- When it was revoked; NULL: in force
    sealed_hash String -- Its hash, encrypted with what the service alone has
  `,
  { engine, orderBy: '(tenant, key_id, updated_at)', shardBy: 'cityHash64(tenant)' },
);

/** The last row of an endpoint counts; read with FINAL. */
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

/** The last row of a tenant counts: a row may have 1 MiB. */
export const xapiMappings = defineTable(
  'xapi_mappings -- How statements become answers; a rebuild needs the last row of a tenant',
  `
    tenant LowCardinality(String) -- Whose statements
    updated_at DateTime64(3, 'UTC') -- When it was set; later than the change before
    mapping String zstd -- As Redis has it, JSON with a version (src/store/catalogue/xapi-mappings.ts)
  `,
  { engine: `${engine}(updated_at)`, orderBy: 'tenant', shardBy: 'cityHash64(tenant)' },
);

const ofModels = { engine: 'MergeTree', shardBy: 'cityHash64(tenant)', settings: rememberingTokens };

export const modelVersions = defineTable(
  "model_versions -- One row for every time that a version of a tenant's model came into force",
  `
    tenant LowCardinality(String) -- Owner of the learners and skills
    change UInt32 -- Number of the change within the tenant, from 1
    version UInt32 -- Version that came into force; 0: nothing fitted, the defaults
    based_on UInt32 -- Version that was in force before
    action LowCardinality(String) -- fit: a new version; rollback: back to an earlier one, by hand
    published_at DateTime64(3, 'UTC') -- When it came into force
    model String zstd3 -- The model as JSON; empty for version 0
    report String zstd3
      -- The fit as JSON: its data, its figures, what was held back and why; empty for version 0
  `,
  { ...ofModels, orderBy: '(tenant, change)' },
);

export const skillParameters = defineTable(
  "skill_parameters -- One row for every skill of every fitted version of a tenant's model",
  `
    tenant LowCardinality(String) -- Owner of the learners and skills
    version UInt32 -- Version of the model
    skill_id LowCardinality(String) -- Skill
    source LowCardinality(String) -- default, prior (mean of fitted skills), fitted or manual
    parameters_version UInt32
      -- Version that brought the parameters: an earlier one where this fit was not better; 0: defaults
    p_init Float64 -- Mastery before the first answer, 0 to 1
    p_learn Float64 -- Probability of learning at one answer, 0 to 1
    p_guess Float64 -- Probability of a correct answer without mastery, 0 to 1
    p_slip Float64 -- Probability of a wrong answer with mastery, 0 to 1
    p_forget Float64 DEFAULT 0 -- Probability of losing mastery at one answer, 0 to 1
    learners UInt32 -- Learners that the fit of the skill rested on
    answers UInt32 -- Answers that the fit of the skill rested on
    old_log_loss Nullable(Float64)
      -- Log loss of BKT with the parameters in force before, on held-out learners; NULL: not measured
    new_log_loss Nullable(Float64)
      -- Log loss of BKT with the fitted parameters, on the same answers; NULL: not measured
    published UInt8 -- 1 when the fit of this version brought the parameters, else 0
    fitted_at Nullable(DateTime64(3, 'UTC')) -- When the parameters were fitted; NULL: never
  `,
  { ...ofModels, orderBy: '(tenant, version, skill_id)' },
);

/** The last snapshot of a learner counts; read with FINAL. */
export const learnerSnapshots = defineTable(
  'learner_snapshots -- State of a learner after the last of the answers that are no longer in attempts; read it with FINAL',
  `
    tenant LowCardinality(String) -- Owner
    user_id String zstd -- Learner
    partition_id UInt16 -- Redis partition of the learner
    learner_seq UInt32 -- Number of the last answer that the state has; rows up to it may be in attempts still
    month UInt32 -- Month of arrival, as 202601, with which it was made
    state String zstd -- The learner's records in Redis, as JSON with a version (src/store/learners/learner-codec.ts)
  `,
  { engine: 'ReplacingMergeTree(learner_seq)', orderBy: '(tenant, user_id)' },
);
