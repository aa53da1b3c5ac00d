/** What a rebuild needs and Redis alone would know: the deployment, its keys, and what was corrected. */
import { defineTable } from '../clickhouse/table.js';

const engine = 'ReplacingMergeTree';

export const takenBack = defineTable(
  'taken_back',
  'One row for every answer that was taken back; it may stand here twice until parts are merged',
  `
    tenant LowCardinality(String) -- Owner of the learner
    user_id String CODEC(ZSTD(1)) -- Learner
    event_id String CODEC(ZSTD(1)) -- Caller's id of the answer
    skill_id LowCardinality(String) -- Skill that it was on
    learner_seq UInt32 -- Number that it had within the learner; later answers have one less since
    received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)) -- When it had arrived
    taken_back_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)) -- When it was taken back, by the clock of Redis
    first_answer String CODEC(ZSTD(1))
      -- What a repeat of its event is told, in base64 (src/store/learners/event-ids.ts); empty: its id was forgotten
  `,
  { engine, orderBy: '(tenant, user_id, taken_back_at, event_id)' },
);

export const erasures = defineTable(
  'erasures',
  'One row for every learner who was erased, without saying whom; possibly twice until parts are merged',
  `
    tenant LowCardinality(String) -- Owner of the learner
    erasure_id String -- As the caller was told
    requested_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)) -- When it was asked for
    done_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)) -- When nothing was left
    receipt String CODEC(ZSTD(1)) -- Counts and proving query, as JSON
  `,
  { engine, orderBy: '(tenant, erasure_id)', shardBy: 'cityHash64(erasure_id)' },
);

export const deployments = defineTable(
  'deployments',
  'What Redis alone would know of the deployment; a rebuild needs it',
  `
    deployment_id String -- Made at the first start
    partitions UInt16 -- Number of partitions of Redis, for ever the same
    created_at DateTime64(3, 'UTC') -- When it started for the first time
    recorded_at DateTime64(3, 'UTC') -- When this row was written
  `,
  { engine, orderBy: '(deployment_id, recorded_at)', shardBy: 'cityHash64(deployment_id)' },
);

export const apiKeys = defineTable(
  'api_keys',
  'One row for every change of an API key; a rebuild needs them. No key can be found out from it',
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
