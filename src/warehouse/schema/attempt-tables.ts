import {
  type Column,
  deduplicationSettings,
  defineTable,
  parseColumns,
  type View,
} from '../clickhouse/ddl.js';

/** Selects accepted answers (ADR 23). */
export const countedCondition = 'learner_version > 0';

const skillFields = [
  ...['skill_id String', 'mastery_before Float64', 'mastery_after Float64', 'plateau_detected UInt8'],
  ...['p_init Float64', 'p_learn Float64', 'p_guess Float64', 'p_slip Float64', 'p_forget Float64'],
  ...['parameters_version UInt32', 'parameters_source String'],
];
const furtherSkillsType = `Array(Tuple(${skillFields.join(', ')}))`;

const fieldNames = skillFields.map((field) => field.split(' ')[0]);
/** Of all skills. Numbers, because a DELETE does not resolve names of tuples in subqueries (26.7). */
const listSkills = (column: string): string =>
  `arrayConcat([${column}], arrayMap(one -> one.${fieldNames.indexOf(column) + 1}, further_skills))`;
const chanceColumns = ['mastery_before', 'p_slip', 'p_guess'].map(listSkills).join(', ');

/**
 * Partitioned by month of arrival. Callers choose `occurred_at`: a block could exceed the engine's limit of
 * 100 partitions.
 */
export const attempts = defineTable(
  'attempts -- Counted answers, one row each',
  `
    tenant LowCardinality(String) -- Owner of learner and skill
    user_id String zstd -- Learner, unique within the tenant
    skill_id LowCardinality(String) -- Skill, unique within the tenant
    item_id String zstd -- Question; empty: not reported
    event_id String zstd -- Id of the answer from the caller, unique within the learner; empty: not reported
    is_correct UInt8 -- 1 if the answer is correct, else 0
    time_spent_seconds Nullable(Float64) zstd -- Seconds spent on the question, 0 to 86400; NULL: not reported
    confidence_score Nullable(UInt8) -- Confidence reported by the learner, 1 to 5; NULL: not reported
    question_difficulty Nullable(Float64) zstd -- Difficulty in logits, -3 to 3; NULL: not reported
    occurred_at DateTime64(3, 'UTC') delta -- Time of the answer
    received_at DateTime64(3, 'UTC') delta -- Time of arrival at the service
    learner_seq UInt32 delta -- Number of the answer within the learner, over all skills, from 1 without gaps
    mastery_before Float64 zstd -- Mastery of the skill before the answer, after forgetting, 0 to 1
    mastery_after Float64 zstd -- Mastery of the skill after the answer, 0 to 1
    p_correct Float64 zstd -- Probability of a correct answer, predicted before the answer, 0 to 1
    plateau_detected UInt8 -- 1 if recent answers on the skill show no progress, else 0
    p_init Float64 zstd -- Mastery before the first answer, as used for this answer, 0 to 1
    p_learn Float64 zstd -- Probability of learning at one answer, as used for this answer, 0 to 1
    p_guess Float64 zstd -- Probability of a correct answer without mastery, as used for this answer, 0 to 1
    p_slip Float64 zstd -- Probability of a wrong answer with mastery, as used for this answer, 0 to 1
    p_forget Float64 DEFAULT 0 zstd
      -- Probability of losing mastery at one answer, as used for this answer, 0 to 1
    parameters_version UInt32 -- Version of the skill's parameters
    model_version UInt32 -- Version of the tracing rules
    parameters_source LowCardinality(String) DEFAULT 'default'
      -- Source of the parameters: default, prior (mean of fitted skills), fitted or manual
    difficulty_shift Float64 zstd -- Shift of guess and slip for the question difficulty, in logits; 0: none
    ability_offset Float64 zstd -- Offset for skill and item that the ability filter used, in logits
    item_difficulty Float64 zstd -- Difficulty of the question, estimated from answers, in logits; 0: unknown
    rapid_seconds Float64 zstd -- Answers faster than this counted as rapid, in seconds; 0: not measured yet
    log_time_mean Float64 zstd -- Norm for the solution time: mean of ln(seconds)
    log_time_sd Float64 zstd -- Norm for the solution time: standard deviation of ln(seconds); 0: not measured yet
    accuracy_norm Float64 DEFAULT 0.75 zstd -- Norm for the accuracy: share of correct answers
    rapid UInt8 -- 1 if the answer was too fast to be a solution, else 0
    efficiency_index Nullable(Float64) zstd
      -- Efficiency (accuracy and time) on the skill after the answer, 0 to 100
      -- NULL: too few timed answers, or too many rapid answers
    recommendation_code LowCardinality(String) -- Recommendation returned with the answer; empty: none
    section LowCardinality(String)
      -- Section of the skill at that time, math or rw; empty: none, the skill counts half in each
    weight Float64 DEFAULT 1 zstd -- Weight of the skill within its section at that time
    closed_mastery Nullable(Float64) zstd
      -- On the first answer of a day: mean of the learner's masteries at the end of the previous day, for momentum;
      -- else NULL
    baseline_total Nullable(UInt16)
      -- Baseline of progress to a goal, as a total score, after the answer; NULL: not enough answers yet
    event_fingerprint UInt64 zstd
      -- 48-bit hash of the event as sent; shows whether a repeated event_id has the same event; 0: no event_id
    learner_version UInt32 delta
      -- Version of the learner's record, committed with the answer; the same for all answers of a commit
    further_skills ${furtherSkillsType} zstd
      -- Skills of the question after skill_id, each with the columns that the row has for the first; empty: one skill
    local_date Date DEFAULT toDate(occurred_at)
      -- Day of occurred_at in the tenant's time zone; rollups use it
    time_zone LowCardinality(String) DEFAULT 'UTC' -- Time zone of local_date, IANA name
    skill_ids Array(String) ALIAS ${listSkills('skill_id')} -- All skills of the question, skill_id first
    masteries_before Array(Float64) ALIAS ${listSkills('mastery_before')} -- mastery_before of each of skill_ids
    masteries_after Array(Float64) ALIAS ${listSkills('mastery_after')} -- mastery_after of each of skill_ids
    mastery_chance Float64 ALIAS arrayProduct((m, s, g) -> m * (1 - s) + (1 - m) * g, ${chanceColumns})
      -- Probability of a correct answer by mastery alone: product over the skills, without difficulties, 0 to 1
    partition_id UInt16 -- Redis partition of the learner; with the outbox id, the key of the row
    outbox_ms UInt64 delta -- First half of the outbox id: commit time in Unix milliseconds, clock of Redis
    outbox_seq UInt64
      -- Second half of the outbox id: 65536 * number of the entry in its millisecond + position in the entry
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
    settings: deduplicationSettings,
  },
);

const storedColumns = attempts.columns.filter(({ type }) => !type.includes(' ALIAS '));
export const storedColumnNames: string = storedColumns.map(({ name }) => name).join(', ');

/** The rewritten rows are only in Redis while ClickHouse lacks them (ADR 44). */
export const replacedAttempts = defineTable(
  'replaced_attempts -- Copies of answers while a change of the time zone rewrites them, for a rebuild of Redis',
  [
    ...storedColumns,
    ...parseColumns("replaced_at DateTime64(3, 'UTC') DEFAULT now64(3) -- Time of the copy"),
  ],
  { engine: 'ReplacingMergeTree', orderBy: '(tenant, user_id, learner_seq)' },
);

/** Number of skills of a row. */
export const skillCount = '(1 + length(further_skills))';

/** Also finds a further skill. */
export const askedSkillCondition =
  '(skill_id = {skillId:String} OR has(further_skills.skill_id, {skillId:String}))';

const getNames = (columns: readonly Column[]): string[] => columns.map(({ name }) => name);
const answerColumns = attempts.columns
  .filter(({ name }) => name !== 'further_skills')
  .map(({ codec: _, ...column }) => ({ ...column, type: column.type.replace(/ (DEFAULT|ALIAS) .*/, '') }));

/**
 * Only answers with several skills cost more than a read of the table. The innermost query has no `skill_id`, which a
 * DELETE would confuse with the further one (26.7).
 */
function buildSkillAnswers(table: string, names: readonly string[]): string {
  const shared = names.filter((name) => !fieldNames.includes(name));
  const further = names.map((name) => {
    const index = fieldNames.indexOf(name) + 1;
    return index === 0 ? name : `${index === 1 ? 'toLowCardinality(f.1)' : `f.${index}`} AS ${name}`;
  });
  return `SELECT ${names.join(', ')}, 1 AS is_first FROM ${table}
UNION ALL SELECT ${further.join(', ')}, 0 AS is_first
FROM (SELECT ${shared.join(', ')}, f FROM ${table} ARRAY JOIN further_skills AS f WHERE notEmpty(further_skills))`;
}

export const skillAnswers: View = {
  name: 'skill_answers',
  comment: 'Answers of attempts, one row for each skill of the question',
  columns: [
    ...answerColumns,
    ...parseColumns(
      'is_first UInt8 -- 1 for the first skill of the question, else 0; rows with 1 count each answer once',
    ),
  ],
  query: buildSkillAnswers('attempts', getNames(answerColumns)),
};

const summedNames = [
  ...['tenant', 'user_id', 'skill_id', 'is_correct', 'time_spent_seconds', 'occurred_at', 'received_at'],
  ...['local_date', 'learner_seq', 'mastery_before', 'mastery_after', 'p_correct', 'plateau_detected'],
  ...['partition_id', 'outbox_ms', 'outbox_seq'],
];
/** Columns of `skill_answers` for sums. A DELETE would spend a tenth of a second on the others. */
export const buildSummedSource = (table: string): string => `(${buildSkillAnswers(table, summedNames)})`;
export const summedAnswers = buildSummedSource('attempts');

export const learnerSnapshots = defineTable(
  'learner_snapshots -- State of a learner after the last answer that retention deleted from attempts; read with FINAL',
  `
    tenant LowCardinality(String) -- Owner of the learner
    user_id String zstd -- Learner
    partition_id UInt16 -- Redis partition of the learner
    learner_seq UInt32 -- Number of the last answer in the state; attempts may still have rows up to it
    month UInt32 -- Month of arrival that was archived with the snapshot, as 202601
    state String zstd -- Records of the learner in Redis, as JSON with a version (src/store/learners/learner-codec.ts)
  `,
  { engine: 'ReplacingMergeTree(learner_seq)', orderBy: '(tenant, user_id)' },
);
