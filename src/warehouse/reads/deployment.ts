/** What ClickHouse is told of the deployment itself, for a rebuild. */
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import { allScopes, type StoredKey } from '../../contracts/access.js';
import type { DeploymentFacts, FactsHistory } from '../../services/rebuild/deployment-facts.js';
import { selectRows } from '../clickhouse/client.js';
import type { Column, Table } from '../clickhouse/table.js';
import { createKeySeal, type KeySeal } from './key-seal.js';

const settings = { fsync_after_insert: 1, fsync_part_directory: 1 };
const time = (name: string, comment: string): Column => ({ name, type: "DateTime64(3, 'UTC')", comment });

export const deployments: Table = {
  name: 'deployments',
  comment: 'What Redis alone would know of the deployment; a rebuild needs it',
  engine: 'ReplacingMergeTree',
  columns: [
    { name: 'deployment_id', type: 'String', comment: 'Made at the first start' },
    { name: 'partitions', type: 'UInt16', comment: 'Number of partitions of Redis, for ever the same' },
    time('created_at', 'When it started for the first time'),
    time('recorded_at', 'When this row was written'),
  ],
  orderBy: '(deployment_id, recorded_at)',
  shardBy: 'cityHash64(deployment_id)',
  settings,
};

export const apiKeys: Table = {
  name: 'api_keys',
  comment: 'One row for every change of an API key; a rebuild needs them. No key can be found out from it',
  engine: 'ReplacingMergeTree',
  columns: [
    { name: 'tenant', type: 'LowCardinality(String)', comment: 'Whose answers the key reaches' },
    { name: 'key_id', type: 'String', comment: 'Names the key' },
    time('updated_at', 'When this row was written'),
    { name: 'requests_per_minute', type: 'Nullable(UInt32)', comment: 'Quota; NULL: none' },
    { name: 'scopes', type: 'String', comment: 'What it may do, separated by commas' },
    time('created_at', 'When it was created'),
    {
      name: 'revoked_at',
      type: "Nullable(DateTime64(3, 'UTC'))",
      comment: 'When it was revoked; NULL: in force',
    },
    { name: 'sealed_hash', type: 'String', comment: 'Its hash, encrypted with what the service alone has' },
  ],
  orderBy: '(tenant, key_id, updated_at)',
  shardBy: 'cityHash64(tenant)',
  settings,
};

interface KeyRow {
  tenant: string;
  requests_per_minute: number | null;
  scopes: string;
  created_ms: number;
  revoked_ms: number | null;
  sealed_hash: string;
}

const lastKeys = `SELECT tenant, last.1 AS requests_per_minute, last.2 AS scopes, last.3 AS created_ms, last.4 AS revoked_ms,
  last.5 AS sealed_hash
FROM (
  SELECT tenant, key_id, argMax(tuple(requests_per_minute, scopes, toFloat64(toUnixTimestamp64Milli(created_at)),
    toFloat64(toUnixTimestamp64Milli(revoked_at)), sealed_hash), updated_at) AS last
  FROM api_keys GROUP BY tenant, key_id
)`;

const lastDeployment = `SELECT deployment_id, partitions, toFloat64(toUnixTimestamp64Milli(created_at)) AS created_ms
FROM deployments ORDER BY recorded_at DESC LIMIT 1`;

const insertSettings: ClickHouseSettings = { async_insert: 0, insert_deduplicate: 0, wait_end_of_query: 1 };

/** @param clickhouseUrl of the service's account, by whose password hashes are sealed */
export function createFactsHistory(client: ClickHouseClient, clickhouseUrl: string): FactsHistory {
  let seal: Promise<KeySeal> | undefined;
  const sealed = (): Promise<KeySeal> => {
    seal ??= createKeySeal(clickhouseUrl);
    return seal;
  };
  const insert = async ({ name }: Table, values: object[]): Promise<void> => {
    await client.insert({ table: name, format: 'JSONEachRow', values, clickhouse_settings: insertSettings });
  };
  return {
    deployment: async () => {
      const [row] = await selectRows<{ deployment_id: string; partitions: number; created_ms: number }>(
        client,
        lastDeployment,
      );
      return row === undefined
        ? null
        : { deploymentId: row.deployment_id, partitions: row.partitions, createdAt: iso(row.created_ms) };
    },
    keys: async () => {
      const rows = await selectRows<KeyRow>(client, lastKeys);
      const opened = await sealed();
      const keys = rows.flatMap((row) => keyOf(row, opened) ?? []);
      return { keys, unreadable: rows.length - keys.length };
    },
    recordDeployment: ({ deploymentId, partitions, createdAt }: DeploymentFacts) =>
      insert(deployments, [
        {
          deployment_id: deploymentId,
          partitions,
          created_at: timeText(createdAt),
          recorded_at: timeText(iso(Date.now())),
        },
      ]),
    recordKeys: async (keys) => {
      const closing = await sealed();
      await insert(
        apiKeys,
        keys.map((key) => rowOf(key, closing)),
      );
    },
  };
}

const rowOf = (key: StoredKey, seal: KeySeal) => ({
  tenant: key.tenant,
  key_id: seal.name(key.keyHash),
  updated_at: timeText(iso(Date.now())),
  requests_per_minute: key.requestsPerMinute,
  scopes: rightsOf(key),
  created_at: timeText(key.createdAt),
  revoked_at: key.revokedAt === null ? null : timeText(key.revokedAt),
  sealed_hash: seal.close(key.keyHash, boundTo(key.tenant, rightsOf(key))),
});

/** Among the scopes, so that the seal holds it and older versions read the rest. */
const developmentMark = 'development';
const rightsOf = ({ scopes, development }: StoredKey): string =>
  [...scopes, ...(development ? [developmentMark] : [])].join();

function keyOf(row: KeyRow, seal: KeySeal): StoredKey | null {
  const keyHash = seal.open(row.sealed_hash, boundTo(row.tenant, row.scopes));
  if (keyHash === null) return null;
  const given = row.scopes.split(',');
  return {
    keyHash,
    tenant: row.tenant,
    requestsPerMinute: row.requests_per_minute,
    scopes: allScopes.filter((scope) => given.includes(scope)),
    development: given.includes(developmentMark),
    createdAt: iso(row.created_ms),
    revokedAt: row.revoked_ms === null ? null : iso(row.revoked_ms),
  };
}

/** Nobody who may write the table can give a key to another tenant, or more rights. */
const boundTo = (tenant: string, scopes: string): string => `${tenant}\n${scopes}`;

const iso = (ms: number): string => new Date(ms).toISOString();
/** As ClickHouse reads times. */
const timeText = (time: string): string => time.replace('T', ' ').replace('Z', '');
