import { defineTable } from '../clickhouse/ddl.js';

const engine = 'ReplacingMergeTree';

export const deployments = defineTable(
  'deployments -- Identity of the deployment, for rebuilds of Redis',
  `
    deployment_id String -- Generated at the first start
    partitions UInt16 -- Number of Redis partitions; never changes
    created_at DateTime64(3, 'UTC') -- Time of the first start
    recorded_at DateTime64(3, 'UTC') -- Time when this row was written
  `,
  { engine, orderBy: '(deployment_id, recorded_at)', shardBy: 'cityHash64(deployment_id)' },
);

export const apiKeys = defineTable(
  'api_keys -- Changes of API keys, for rebuilds of Redis; a key cannot be derived from a row',
  `
    tenant LowCardinality(String) -- Tenant that the key gives access to
    key_id String -- Identifies the key
    updated_at DateTime64(3, 'UTC') -- Time when this row was written
    requests_per_minute Nullable(UInt32) -- Quota; NULL: none
    scopes String -- Scopes of the key, separated by commas
    created_at DateTime64(3, 'UTC') -- Time of creation
    revoked_at Nullable(DateTime64(3, 'UTC')) -- Time of revocation; NULL: valid
    sealed_hash String -- Hash of the key, encrypted with a secret of the service
    name Nullable(String) -- Display name; NULL: none
    note Nullable(String) -- Note of the owner; NULL: none
  `,
  { engine, orderBy: '(tenant, key_id, updated_at)', shardBy: 'cityHash64(tenant)' },
);

/** Keeps only the last row of a tenant, because a row can have 1 MiB. */
export const xapiMappings = defineTable(
  'xapi_mappings -- Mappings from xAPI statements to answers, for rebuilds of Redis; the last row of a tenant is the current one',
  `
    tenant LowCardinality(String) -- Owner of the statements
    updated_at DateTime64(3, 'UTC') -- Time of the change; increases with every change
    mapping String zstd -- Mapping as in Redis, JSON with a version (src/store/catalogue/xapi-mappings.ts)
  `,
  { engine: `${engine}(updated_at)`, orderBy: 'tenant', shardBy: 'cityHash64(tenant)' },
);

export const tenantSettings = defineTable(
  'tenant_settings -- Time zones of tenants; the last row of a tenant is the current one; read the view time_zones',
  `
    tenant LowCardinality(String) -- Owner of the learners
    updated_at DateTime64(3, 'UTC') -- Time of the change; increases with every change
    time_zone LowCardinality(String) -- Time zone, IANA name
    starts Array(DateTime('UTC')) -- Times from which offsets apply, ascending
    offsets Array(Int32) -- Local time minus UTC from each of starts, in seconds
  `,
  { engine: `${engine}(updated_at)`, orderBy: 'tenant', shardBy: 'cityHash64(tenant)' },
);

export const erasures = defineTable(
  'erasures -- Erasures, without the learner; a row may exist twice until parts are merged',
  `
    tenant LowCardinality(String) -- Owner of the learner
    erasure_id String -- Id of the erasure, as returned to the caller
    requested_at DateTime64(3, 'UTC') delta -- Time of the request
    done_at DateTime64(3, 'UTC') delta -- Time of completion
    receipt String zstd -- Counts and the query that proves the erasure, as JSON
  `,
  { engine, orderBy: '(tenant, erasure_id)', shardBy: 'cityHash64(erasure_id)' },
);
