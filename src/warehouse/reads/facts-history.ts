/**
 * Facts of the deployment that only Redis knows, and a rebuild needs: into how many partitions it is divided, and its API
 * keys. Whoever reads the tables may not be trusted with the hash of a key that people chose, for it can be guessed from
 * it; so it is encrypted with what only the service has, the password of its own account.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import type { ClickHouseClient } from '@clickhouse/client';
import { allScopes, type DeploymentFacts, type StoredKey } from '../../contracts/access.js';
import { selectRows } from '../clickhouse/client.js';
import { apiKeys, deployments } from '../schema/record-tables.js';

type KeyRow = Omit<StoredKey, 'keyHash' | 'scopes' | 'development'> & { scopes: string; sealed: string };

const lastKeys = `SELECT tenant, requests_per_minute AS requestsPerMinute, scopes, created_at AS createdAt,
  revoked_at AS revokedAt, sealed_hash AS sealed
FROM ${apiKeys.name} ORDER BY updated_at DESC LIMIT 1 BY tenant, key_id`;

const lastDeployment = `SELECT deployment_id AS deploymentId, created_at AS createdAt, partitions
FROM ${deployments.name} ORDER BY recorded_at DESC LIMIT 1`;

export type FactsHistory = ReturnType<typeof createFactsHistory>;

/** @param clickhouseUrl of the service's account, by whose password hashes are sealed */
export function createFactsHistory(client: ClickHouseClient, clickhouseUrl: string) {
  let derived: Promise<KeySeal> | undefined;
  const seal = (): Promise<KeySeal> => {
    derived ??= createKeySeal(clickhouseUrl);
    return derived;
  };
  const select = <Row>(query: string) =>
    selectRows<Row>(client, query, undefined, {}, { date_time_output_format: 'iso' });
  const insert = async (table: string, values: object[]): Promise<void> => {
    const clickhouse_settings = {
      ...({ async_insert: 0, insert_deduplicate: 0, wait_end_of_query: 1 } as const),
      date_time_input_format: 'best_effort',
    } as const;
    await client.insert({ table, format: 'JSONEachRow', values, clickhouse_settings });
  };
  return {
    /** The deployment that was recorded last. */
    deployment: async () => (await select<DeploymentFacts>(lastDeployment))[0] ?? null,
    /** Each key as it was recorded last, and how many were sealed with another secret. */
    keys: async () => {
      const rows = await select<KeyRow>(lastKeys);
      const opened = await seal();
      const keys = rows.flatMap((row) => keyOf(row, opened) ?? []);
      return { keys, unreadable: rows.length - keys.length };
    },
    recordDeployment: ({ deploymentId, partitions, createdAt }: DeploymentFacts) =>
      insert(deployments.name, [
        { deployment_id: deploymentId, partitions, created_at: createdAt, recorded_at: now() },
      ]),
    recordKeys: async (keys: readonly StoredKey[]) => {
      const closing = await seal();
      const rows = keys.map((key) => rowOf(key, closing));
      await insert(apiKeys.name, rows);
    },
  };
}

const now = (): string => new Date().toISOString();

const rowOf = (key: StoredKey, seal: KeySeal) => ({
  tenant: key.tenant,
  key_id: seal.name(key.keyHash),
  updated_at: now(),
  requests_per_minute: key.requestsPerMinute,
  scopes: rightsOf(key),
  created_at: key.createdAt,
  revoked_at: key.revokedAt,
  sealed_hash: seal.close(key.keyHash, boundTo(key.tenant, rightsOf(key))),
});

/** Stands among the scopes, so that the seal holds it. */
const developmentMark = 'development';
const rightsOf = ({ scopes, development }: StoredKey): string =>
  [...scopes, ...(development ? [developmentMark] : [])].join();

function keyOf({ sealed, scopes, ...row }: KeyRow, seal: KeySeal): StoredKey | null {
  const keyHash = seal.open(sealed, boundTo(row.tenant, scopes));
  if (keyHash === null) return null;
  const given = scopes.split(',');
  const development = given.includes(developmentMark);
  return { ...row, keyHash, scopes: allScopes.filter((scope) => given.includes(scope)), development };
}

/** Nobody who may write the table can give a key to another tenant, or more rights. */
const boundTo = (tenant: string, scopes: string): string => `${tenant}\n${scopes}`;

type KeySeal = Awaited<ReturnType<typeof createKeySeal>>;

const cipher = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;
const derive = promisify<string, string, number, Buffer>(scrypt);

/** @param clickhouseUrl with the password of the account */
async function createKeySeal(clickhouseUrl: string) {
  const password = decodeURIComponent(new URL(clickhouseUrl).password);
  const secret = await derive(password, 'skilltrace api keys', 64);
  const [sealing, naming] = [secret.subarray(0, 32), secret.subarray(32)];
  return {
    /** Names a key without its hash; the same for the same key and secret. */
    name: (keyHash: string): string =>
      createHmac('sha256', naming).update(keyHash).digest('hex').slice(0, 32),
    /** @param bound what must be the same when it is opened */
    close: (keyHash: string, bound: string): string => {
      const iv = randomBytes(ivBytes);
      const sealed = createCipheriv(cipher, sealing, iv).setAAD(Buffer.from(bound));
      const body = Buffer.concat([sealed.update(keyHash, 'utf8'), sealed.final()]);
      return Buffer.concat([iv, sealed.getAuthTag(), body]).toString('base64');
    },
    /** Null for what was sealed with another secret, or bound to something else. */
    open: (text: string, bound: string): string | null => {
      const sealed = Buffer.from(text, 'base64');
      if (sealed.length < ivBytes + tagBytes) return null;
      const opened = createDecipheriv(cipher, sealing, sealed.subarray(0, ivBytes))
        .setAAD(Buffer.from(bound))
        .setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes));
      const keyHash = opened.update(sealed.subarray(ivBytes + tagBytes));
      try {
        return Buffer.concat([keyHash, opened.final()]).toString();
      } catch {
        // The one thing that final() checks is the tag.
        return null;
      }
    },
  };
}
