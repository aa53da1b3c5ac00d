import { randomUUID } from 'node:crypto';
import type { DeploymentRecord } from '../../../contracts/access/access.js';
import { indices } from '../../../lists.js';
import { sendPerKey } from '../commands/bulk-operations.js';
import { mapRedisErrors, type RedisClient } from '../connection/client.js';
import { markerKey, metaKey, stateVersion } from '../keys.js';

export const defaultPartitions = 16;

export type Deployment =
  | { readonly state: 'ready'; readonly partitions: number; readonly id: string }
  | { readonly state: 'lost' }
  | VersionMismatch;

export interface VersionMismatch {
  readonly state: 'older' | 'newer';
  readonly storedVersion: string;
  readonly partitions: number;
}

export function formatUnusableReason(deployment: Exclude<Deployment, { state: 'ready' }>): string {
  if (deployment.state === 'lost')
    return 'Redis is empty but ClickHouse has answers, goals, catalogues, webhooks or revoked keys; restore Redis with npm run rebuild';
  const { state, storedVersion } = deployment;
  const found = `Redis has learners of version ${storedVersion}, but this version of the service needs version ${stateVersion}`;
  return state === 'newer'
    ? `${found}; start the newer version of the service`
    : `${found}; start the previous version, wait until health shows outbox_length 0, stop it, and run npm run rebuild`;
}

/**
 * An empty Redis is new only if ClickHouse has no state; otherwise it lost its data. Safe to run
 * concurrently.
 */
export async function openDeployment(
  client: RedisClient,
  hasWarehouseState: () => Promise<boolean>,
): Promise<Deployment> {
  const mismatch = await findVersionMismatch(client);
  if (mismatch !== null) return mismatch;
  const isNew = (await client.hexists(metaKey, 'partitions')) === 0;
  if (isNew) {
    if (await hasWarehouseState()) return { state: 'lost' };
    await initializeDeployment(client);
  }
  const [storedPartitions, id] = await client.hmget(metaKey, 'partitions', 'deployment_id');
  const partitions = Number(storedPartitions ?? defaultPartitions);
  const markers = indices(partitions).map((one) => markerKey(one));
  const marks = await sendPerKey<number>(client, 'exists', markers);
  if (!isNew && marks.includes(0)) return { state: 'lost' };
  return { state: 'ready', partitions, id: id ?? '' };
}

export async function findVersionMismatch(client: RedisClient): Promise<VersionMismatch | null> {
  const [partitions, version] = await client.hmget(metaKey, 'partitions', 'model_version');
  const storedVersion = version ?? '';
  if (!partitions || storedVersion === stateVersion) return null;
  const state = storedVersion.localeCompare(stateVersion, 'en', { numeric: true }) > 0 ? 'newer' : 'older';
  return { state, storedVersion, partitions: Number(partitions) };
}

export async function readDeployment(client: RedisClient): Promise<DeploymentRecord | null> {
  const meta = client.hmget(metaKey, 'deployment_id', 'created_at', 'partitions');
  const [deploymentId, createdAt, partitions] = await mapRedisErrors(meta);
  if (!deploymentId || !createdAt || !partitions) return null;
  return { deploymentId, createdAt, partitions: Number(partitions) };
}

/** Writes `partitions` last: if the process dies before, the next start repeats the rest. */
async function initializeDeployment(client: RedisClient): Promise<void> {
  const now = new Date().toISOString();
  await Promise.all(indices(defaultPartitions).map((one) => client.set(markerKey(one), now, 'NX')));
  await client.hsetnx(metaKey, 'deployment_id', randomUUID());
  await client.hsetnx(metaKey, 'created_at', now);
  await client.hsetnx(metaKey, 'model_version', stateVersion);
  await client.hsetnx(metaKey, 'partitions', `${defaultPartitions}`);
}
