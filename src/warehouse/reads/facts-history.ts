/**
 * Facts for a rebuild. Keys that people choose can be guessed from a hash, so hashes are encrypted with the
 * password of the service's account.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import type { ClickHouseClient } from '@clickhouse/client';
import { allScopes, type DeploymentRecord, type StoredKey } from '../../contracts/access.js';
import { selectRows } from '../clickhouse/client.js';
import { insertObjects } from '../clickhouse/insert-rows.js';
import { apiKeys, deployments, xapiMappings } from '../schema/deployment-tables.js';

type KeyRow = Omit<StoredKey, 'keyHash' | 'scopes' | 'development'> & { scopes: string; sealed: string };

const lastKeys = `SELECT tenant, requests_per_minute AS requestsPerMinute, scopes, created_at AS createdAt,
  revoked_at AS revokedAt, sealed_hash AS sealed
FROM ${apiKeys.name} ORDER BY updated_at DESC LIMIT 1 BY tenant, key_id`;

const lastDeployment = `SELECT deployment_id AS deploymentId, created_at AS createdAt, partitions
FROM ${deployments.name} ORDER BY recorded_at DESC LIMIT 1`;

const lastMappings = `SELECT tenant, mapping AS text FROM ${xapiMappings.name}
ORDER BY updated_at DESC LIMIT 1 BY tenant`;

export type FactsHistory = ReturnType<typeof createFactsHistory>;

export function createFactsHistory(client: ClickHouseClient, clickhouseUrl: string) {
  let secrets: Promise<Secrets> | undefined;
  const derived = (): Promise<Secrets> => {
    secrets ??= deriveSecrets(clickhouseUrl);
    return secrets;
  };
  const select = <Row>(query: string) =>
    selectRows<Row>(client, query, { settings: { date_time_output_format: 'iso' } });
  const insert = (table: string, values: object[]) =>
    insertObjects(client, table, values, { insert_deduplicate: 0, date_time_input_format: 'best_effort' });
  return {
    deployment: async () => (await select<DeploymentRecord>(lastDeployment))[0] ?? null,
    /** `unreadable` counts keys that were encrypted with another password. */
    keys: async () => {
      const rows = await select<KeyRow>(lastKeys);
      const { sealing } = await derived();
      const keys = rows.flatMap((row) => keyOf(row, sealing) ?? []);
      return { keys, unreadable: rows.length - keys.length };
    },
    mappings: () => select<{ tenant: string; text: string }>(lastMappings),
    recordMapping: (tenant: string, mapping: string, updatedAt: number) =>
      insert(xapiMappings.name, [{ tenant, updated_at: new Date(updatedAt).toISOString(), mapping }]),
    recordDeployment: async ({ deploymentId, partitions, createdAt }: DeploymentRecord): Promise<void> => {
      const row = { deployment_id: deploymentId, partitions, created_at: createdAt, recorded_at: now() };
      await insert(deployments.name, [row]);
    },
    recordKeys: async (keys: readonly StoredKey[]): Promise<void> => {
      const own = await derived();
      await insert(
        apiKeys.name,
        keys.map((key) => rowOf(key, own)),
      );
    },
  };
}

const now = (): string => new Date().toISOString();

const rowOf = (key: StoredKey, { sealing, naming }: Secrets) => ({
  tenant: key.tenant,
  // Identifies the key without its hash.
  key_id: createHmac('sha256', naming).update(key.keyHash).digest('hex').slice(0, 32),
  updated_at: now(),
  requests_per_minute: key.requestsPerMinute,
  scopes: rightsOf(key),
  created_at: key.createdAt,
  revoked_at: key.revokedAt,
  sealed_hash: seal(key.keyHash, boundTo(key.tenant, rightsOf(key)), sealing),
});

/** Stored as a scope, because the encryption authenticates scopes. */
const developmentMark = 'development';
const rightsOf = ({ scopes, development }: StoredKey): string =>
  [...scopes, ...(development ? [developmentMark] : [])].join();

function keyOf({ sealed, scopes, ...row }: KeyRow, sealing: Buffer): StoredKey | null {
  const keyHash = unseal(sealed, boundTo(row.tenant, scopes), sealing);
  if (keyHash === null) return null;
  const given = scopes.split(',');
  const development = given.includes(developmentMark);
  return { ...row, keyHash, scopes: allScopes.filter((scope) => given.includes(scope)), development };
}

/**
 * The encryption authenticates tenant and scopes: an account that can write the table cannot change them.
 */
const boundTo = (tenant: string, scopes: string): Buffer => Buffer.from(`${tenant}\n${scopes}`);

interface Secrets {
  readonly sealing: Buffer;
  readonly naming: Buffer;
}

const derive = promisify<string, string, number, Buffer>(scrypt);

async function deriveSecrets(clickhouseUrl: string): Promise<Secrets> {
  const password = decodeURIComponent(new URL(clickhouseUrl).password);
  const secret = await derive(password, 'skilltrace api keys', 64);
  return { sealing: secret.subarray(0, 32), naming: secret.subarray(32) };
}

const cipher = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

function seal(keyHash: string, bound: Buffer, secret: Buffer): string {
  const iv = randomBytes(ivBytes);
  const sealed = createCipheriv(cipher, secret, iv).setAAD(bound);
  const body = Buffer.concat([sealed.update(keyHash, 'utf8'), sealed.final()]);
  return Buffer.concat([iv, sealed.getAuthTag(), body]).toString('base64');
}

function unseal(text: string, bound: Buffer, secret: Buffer): string | null {
  const sealed = Buffer.from(text, 'base64');
  if (sealed.length < ivBytes + tagBytes) return null;
  const opened = createDecipheriv(cipher, secret, sealed.subarray(0, ivBytes))
    .setAAD(bound)
    .setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes));
  const keyHash = opened.update(sealed.subarray(ivBytes + tagBytes));
  try {
    return Buffer.concat([keyHash, opened.final()]).toString();
  } catch {
    // final() only checks the tag.
    return null;
  }
}
