import { defineTable, rememberingTokens } from '../clickhouse/ddl.js';

/** Selects accepted answers (ADR 23). */
export const countedRows = 'learner_version > 0';

/**
 * Partitioned by month of arrival. Callers choose `occurred_at`: a block could exceed the engine's limit of
 * 100 partitions.
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
      // For lookups by event id alone.
      'event_ids event_id TYPE bloom_filter GRANULARITY 1',
    ],
    partitionBy: 'toYYYYMM(received_at)',
    orderBy: '(tenant, user_id, learner_seq)',
    settings: rememberingTokens,
  },
);

/** Read with FINAL: the last row of a learner counts. */
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
