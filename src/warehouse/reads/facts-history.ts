/**
 * Facts for a rebuild. Keys that people choose can be guessed from a hash, so hashes are encrypted with the
 * password of the service's account.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import type { ClickHouseClient } from '@clickhouse/client';
import { allScopes, type DeploymentRecord, type StoredKey } from '../../contracts/access/access.js';
import { getCalendar, listOffsets } from '../../domain/base/calendar.js';
import { createReadDeadline, selectRows } from '../clickhouse/client.js';
import { insertObjects } from '../clickhouse/insert-rows.js';
import { apiKeys, deployments, tenantSettings, xapiMappings } from '../schema/deployment-tables.js';

type KeyRow = Omit<StoredKey, 'keyHash' | 'scopes' | 'development'> & { scopes: string; sealed: string };

const selectKeys = `SELECT tenant, requests_per_minute AS requestsPerMinute, scopes, created_at AS createdAt,
  revoked_at AS revokedAt, name, note, sealed_hash AS sealed
FROM ${apiKeys.name} ORDER BY updated_at DESC LIMIT 1 BY tenant, key_id`;

const selectDeployment = `SELECT deployment_id AS deploymentId, created_at AS createdAt, partitions
FROM ${deployments.name} ORDER BY recorded_at DESC LIMIT 1`;

const selectMappings = `SELECT tenant, mapping AS text FROM ${xapiMappings.name}
ORDER BY updated_at DESC LIMIT 1 BY tenant`;

const selectTimeZones = `SELECT tenant, time_zone AS timeZone, toFloat64(toUnixTimestamp64Milli(updated_at)) AS updatedAt
FROM ${tenantSettings.name} ORDER BY updated_at DESC LIMIT 1 BY tenant`;

export type FactsHistory = ReturnType<typeof createFactsHistory>;

export function createFactsHistory(client: ClickHouseClient, clickhouseUrl: string) {
  let secrets: Promise<Secrets> | undefined;
  const getSecrets = (): Promise<Secrets> => {
    secrets ??= deriveSecrets(clickhouseUrl);
    return secrets;
  };
  const select = <Row>(query: string) =>
    selectRows<Row>(client, query, { settings: { date_time_output_format: 'iso' } });
  const insert = (table: string, values: object[]) =>
    insertObjects(client, table, values, { insert_deduplicate: 0, date_time_input_format: 'best_effort' });
  return {
    fetchDeployment: async () => (await select<DeploymentRecord>(selectDeployment))[0] ?? null,
    /** `unreadable` counts keys that were encrypted with another password. */
    fetchKeys: async () => {
      const rows = await select<KeyRow>(selectKeys);
      const { sealing } = await getSecrets();
      const keys = rows.flatMap((row) => unsealKey(row, sealing) ?? []);
      return { keys, unreadable: rows.length - keys.length };
    },
    fetchMappings: () => select<{ tenant: string; text: string }>(selectMappings),
    recordMapping: (tenant: string, mapping: string, updatedAt: number) =>
      insert(xapiMappings.name, [{ tenant, updated_at: new Date(updatedAt).toISOString(), mapping }]),
    /** All names that ClickHouse knows, except `Factory`, which is no place. */
    listTimeZones: async (): Promise<string[]> => {
      const query = "SELECT time_zone AS name FROM system.time_zones WHERE time_zone != 'Factory'";
      const rows = await selectRows<{ name: string }>(client, query, { signal: createReadDeadline() });
      return rows.map(({ name }) => name);
    },
    fetchTimeZones: () => select<{ tenant: string; timeZone: string; updatedAt: number }>(selectTimeZones),
    recordTimeZone: (
      tenant: string,
      { timeZone, requestedAt }: { timeZone: string; requestedAt: number },
    ) => {
      const offsets = listOffsets(getCalendar(timeZone));
      const row = {
        ...{ tenant, updated_at: new Date(requestedAt).toISOString(), time_zone: timeZone },
        ...{ starts: offsets.map(([start]) => start), offsets: offsets.map(([, offset]) => offset) },
      };
      return insert(tenantSettings.name, [row]);
    },
    recordDeployment: async ({ deploymentId, partitions, createdAt }: DeploymentRecord): Promise<void> => {
      const row = {
        deployment_id: deploymentId,
        partitions,
        created_at: createdAt,
        recorded_at: formatNow(),
      };
      await insert(deployments.name, [row]);
    },
    recordKeys: async (keys: readonly StoredKey[]): Promise<void> => {
      const keySecrets = await getSecrets();
      await insert(
        apiKeys.name,
        keys.map((key) => toRow(key, keySecrets)),
      );
    },
  };
}

const formatNow = (): string => new Date().toISOString();

const toRow = (key: StoredKey, { sealing, naming }: Secrets) => ({
  tenant: key.tenant,
  // Identifies the key without its hash.
  key_id: createHmac('sha256', naming).update(key.keyHash).digest('hex').slice(0, 32),
  updated_at: formatNow(),
  requests_per_minute: key.requestsPerMinute,
  scopes: formatRights(key),
  created_at: key.createdAt,
  revoked_at: key.revokedAt,
  name: key.name ?? null,
  note: key.note ?? null,
  sealed_hash: seal(key.keyHash, buildAuthenticatedData(key.tenant, formatRights(key)), sealing),
});

/** Stored as a scope, because the encryption authenticates scopes. */
const developmentMark = 'development';
const formatRights = ({ scopes, development }: StoredKey): string =>
  [...scopes, ...(development ? [developmentMark] : [])].join();

function unsealKey({ sealed, scopes, ...row }: KeyRow, sealing: Buffer): StoredKey | null {
  const keyHash = unseal(sealed, buildAuthenticatedData(row.tenant, scopes), sealing);
  if (keyHash === null) return null;
  const grantedScopes = scopes.split(',');
  const development = grantedScopes.includes(developmentMark);
  return { ...row, keyHash, scopes: allScopes.filter((scope) => grantedScopes.includes(scope)), development };
}

/**
 * The encryption authenticates tenant and scopes: an account that can write the table cannot change them.
 */
const buildAuthenticatedData = (tenant: string, scopes: string): Buffer =>
  Buffer.from(`${tenant}\n${scopes}`);

interface Secrets {
  readonly sealing: Buffer;
  readonly naming: Buffer;
}

const deriveKey = promisify<string, string, number, Buffer>(scrypt);

async function deriveSecrets(clickhouseUrl: string): Promise<Secrets> {
  const password = decodeURIComponent(new URL(clickhouseUrl).password);
  const secret = await deriveKey(password, 'skilltrace api keys', 64);
  return { sealing: secret.subarray(0, 32), naming: secret.subarray(32) };
}

const cipher = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

function seal(keyHash: string, authenticatedData: Buffer, secret: Buffer): string {
  const iv = randomBytes(ivBytes);
  const sealed = createCipheriv(cipher, secret, iv).setAAD(authenticatedData);
  const body = Buffer.concat([sealed.update(keyHash, 'utf8'), sealed.final()]);
  return Buffer.concat([iv, sealed.getAuthTag(), body]).toString('base64');
}

function unseal(text: string, authenticatedData: Buffer, secret: Buffer): string | null {
  const sealed = Buffer.from(text, 'base64');
  if (sealed.length < ivBytes + tagBytes) return null;
  const opened = createDecipheriv(cipher, secret, sealed.subarray(0, ivBytes))
    .setAAD(authenticatedData)
    .setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes));
  const keyHash = opened.update(sealed.subarray(ivBytes + tagBytes));
  try {
    return Buffer.concat([keyHash, opened.final()]).toString();
  } catch {
    // final() only checks the tag.
    return null;
  }
}
