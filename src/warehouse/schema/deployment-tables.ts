/** What ClickHouse keeps of the deployment itself, for a rebuild. */
import { columnsOf, writtenThrough as settings, type Table } from '../clickhouse/table.js';

export const deployments: Table = {
  name: 'deployments',
  comment: 'What Redis alone would know of the deployment; a rebuild needs it',
  engine: 'ReplacingMergeTree',
  columns: columnsOf(`
    deployment_id String -- Made at the first start
    partitions UInt16 -- Number of partitions of Redis, for ever the same
    created_at DateTime64(3, 'UTC') -- When it started for the first time
    recorded_at DateTime64(3, 'UTC') -- When this row was written
  `),
  orderBy: '(deployment_id, recorded_at)',
  shardBy: 'cityHash64(deployment_id)',
  settings,
};

export const apiKeys: Table = {
  name: 'api_keys',
  comment: 'One row for every change of an API key; a rebuild needs them. No key can be found out from it',
  engine: 'ReplacingMergeTree',
  columns: columnsOf(`
    tenant LowCardinality(String) -- Whose answers the key reaches
    key_id String -- Names the key
    updated_at DateTime64(3, 'UTC') -- When this row was written
    requests_per_minute Nullable(UInt32) -- Quota; NULL: none
    scopes String -- What it may do, separated by commas
    created_at DateTime64(3, 'UTC') -- When it was created
    revoked_at Nullable(DateTime64(3, 'UTC')) -- When it was revoked; NULL: in force
    sealed_hash String -- Its hash, encrypted with what the service alone has
  `),
  orderBy: '(tenant, key_id, updated_at)',
  shardBy: 'cityHash64(tenant)',
  settings,
};
