import { defineTable, rememberingTokens } from '../clickhouse/ddl.js';

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
