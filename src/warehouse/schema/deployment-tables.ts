/** Inserts can be repeated: queries select one row per key. */
import { defineTable } from '../clickhouse/ddl.js';

const engine = 'ReplacingMergeTree';

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

/** Keeps only the last row of a tenant, because a row can have 1 MiB. */
export const xapiMappings = defineTable(
  'xapi_mappings -- How statements become answers; a rebuild needs the last row of a tenant',
  `
    tenant LowCardinality(String) -- Whose statements
    updated_at DateTime64(3, 'UTC') -- When it was set; later than the change before
    mapping String zstd -- As Redis has it, JSON with a version (src/store/catalogue/xapi-mappings.ts)
  `,
  { engine: `${engine}(updated_at)`, orderBy: 'tenant', shardBy: 'cityHash64(tenant)' },
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
