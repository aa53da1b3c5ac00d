/**
 * Facts of the deployment that only Redis knows, and a rebuild needs: into how many partitions it is divided, and its API
 * keys, sealed (key-seal.ts).
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { allScopes, type DeploymentFacts, type StoredKey } from '../../contracts/access.js';
import { selectRows } from '../clickhouse/client.js';
import { apiKeys, deployments } from '../schema/record-tables.js';
import { createKeySeal, type KeySeal } from './key-seal.js';

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

const lastDeployment = `SELECT deployment_id AS deploymentId, partitions,
  toFloat64(toUnixTimestamp64Milli(created_at)) AS createdMs
FROM deployments ORDER BY recorded_at DESC LIMIT 1`;

export type FactsHistory = ReturnType<typeof createFactsHistory>;

/** @param clickhouseUrl of the service's account, by whose password hashes are sealed */
export function createFactsHistory(client: ClickHouseClient, clickhouseUrl: string) {
  let derived: Promise<KeySeal> | undefined;
  const seal = (): Promise<KeySeal> => {
    derived ??= createKeySeal(clickhouseUrl);
    return derived;
  };
  const insert = async (table: string, values: object[]): Promise<void> => {
    const clickhouse_settings = { async_insert: 0, insert_deduplicate: 0, wait_end_of_query: 1 } as const;
    await client.insert({ table, format: 'JSONEachRow', values, clickhouse_settings });
  };
  return {
    /** The deployment that was recorded last. */
    deployment: async (): Promise<DeploymentFacts | null> => {
      const [row] = await selectRows<Omit<DeploymentFacts, 'createdAt'> & { createdMs: number }>(
        client,
        lastDeployment,
      );
      if (row === undefined) return null;
      const { createdMs, ...facts } = row;
      return { ...facts, createdAt: iso(createdMs) };
    },
    /** Each key as it was recorded last, and how many were sealed with another secret. */
    keys: async () => {
      const rows = await selectRows<KeyRow>(client, lastKeys);
      const opened = await seal();
      const keys = rows.flatMap((row) => keyOf(row, opened) ?? []);
      return { keys, unreadable: rows.length - keys.length };
    },
    recordDeployment: ({ deploymentId, partitions, createdAt }: DeploymentFacts) =>
      insert(deployments.name, [
        { deployment_id: deploymentId, partitions, created_at: timeText(createdAt), recorded_at: now() },
      ]),
    recordKeys: async (keys: readonly StoredKey[]) => {
      const closing = await seal();
      const rows = keys.map((key) => rowOf(key, closing));
      await insert(apiKeys.name, rows);
    },
  };
}

const rowOf = (key: StoredKey, seal: KeySeal) => ({
  tenant: key.tenant,
  key_id: seal.name(key.keyHash),
  updated_at: now(),
  requests_per_minute: key.requestsPerMinute,
  scopes: rightsOf(key),
  created_at: timeText(key.createdAt),
  revoked_at: key.revokedAt === null ? null : timeText(key.revokedAt),
  sealed_hash: seal.close(key.keyHash, boundTo(key.tenant, rightsOf(key))),
});

/** Stands among the scopes, so that the seal holds it. */
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
const now = (): string => timeText(iso(Date.now()));
