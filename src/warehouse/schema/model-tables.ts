import { deduplicationSettings, defineTable } from '../clickhouse/ddl.js';

const modelLayout = { engine: 'MergeTree', shardBy: 'cityHash64(tenant)', settings: deduplicationSettings };

export const modelVersions = defineTable(
  "model_versions -- Changes of a tenant's active model version, one row each",
  `
    tenant LowCardinality(String) -- Owner of the learners and skills
    change UInt32 -- Number of the change within the tenant, from 1
    version UInt32 -- Version that became active; 0: the defaults, nothing is fitted
    based_on UInt32 -- Version that was active before
    action LowCardinality(String) -- fit: a new version; rollback: manual return to an earlier version
    published_at DateTime64(3, 'UTC') -- Time when the version became active
    model String zstd3 -- The model as JSON; empty for version 0
    report String zstd3
      -- Report of the fit as JSON: data, figures, unpublished parts with reasons; empty for version 0
  `,
  { ...modelLayout, orderBy: '(tenant, change)' },
);

export const skillParameters = defineTable(
  "skill_parameters -- Parameters of each skill in each fitted version of a tenant's model",
  `
    tenant LowCardinality(String) -- Owner of the learners and skills
    version UInt32 -- Version of the model
    skill_id LowCardinality(String) -- Skill
    source LowCardinality(String) -- default, prior (mean of fitted skills), fitted or manual
    parameters_version UInt32
      -- Version that introduced the parameters: an earlier one if this fit was not better; 0: defaults
    p_init Float64 -- Mastery before the first answer, 0 to 1
    p_learn Float64 -- Probability of learning at one answer, 0 to 1
    p_guess Float64 -- Probability of a correct answer without mastery, 0 to 1
    p_slip Float64 -- Probability of a wrong answer with mastery, 0 to 1
    p_forget Float64 DEFAULT 0 -- Probability of losing mastery at one answer, 0 to 1
    learners UInt32 -- Learners in the fit of the skill
    answers UInt32 -- Answers in the fit of the skill
    old_log_loss Nullable(Float64)
      -- Log loss of BKT with the previous parameters, on held-out learners; NULL: not measured
    new_log_loss Nullable(Float64)
      -- Log loss of BKT with the fitted parameters, on the same answers; NULL: not measured
    published UInt8 -- 1 if this version introduced the parameters, else 0
    fitted_at Nullable(DateTime64(3, 'UTC')) -- Time of the fit of the parameters; NULL: not fitted
  `,
  { ...modelLayout, orderBy: '(tenant, version, skill_id)' },
);
