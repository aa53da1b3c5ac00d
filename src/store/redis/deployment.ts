import { randomUUID } from 'node:crypto';
import type { DeploymentRecord } from '../../contracts/access.js';
import { indices } from '../../lists.js';
import { type RedisClient, whileRedisServes } from './client.js';
import { keptNow, markerKey, metaKey } from './keys.js';
import { replyPerKey } from './reads.js';

export const defaultPartitions = 16;

export type Deployment =
  | { readonly state: 'ready'; readonly partitions: number; readonly id: string }
  | { readonly state: 'lost' }
  | OtherVersion;

export interface OtherVersion {
  readonly state: 'older' | 'newer';
  readonly kept: string;
  readonly partitions: number;
}

export function unusableReason(deployment: Exclude<Deployment, { state: 'ready' }>): string {
  if (deployment.state === 'lost')
    return 'Redis came back empty while ClickHouse has answers, goals, catalogues, webhooks or revoked keys: npm run rebuild restores it';
  const { state, kept } = deployment;
  const found = `Redis holds learners of version ${kept}, this version of the service keeps version ${keptNow}`;
  return state === 'newer'
    ? `${found}: start the newer one`
    : `${found}: drain the outbox with the version before (health: outbox_length 0), stop it, then run npm run rebuild`;
}

/**
 * An empty Redis is new only if ClickHouse has no state; otherwise it lost its data. Safe to run
 * concurrently.
 */
export async function openDeployment(
  client: RedisClient,
  holdsState: () => Promise<boolean>,
): Promise<Deployment> {
  const other = await otherVersion(client);
  if (other !== null) return other;
  const isNew = (await client.hexists(metaKey, 'partitions')) === 0;
  if (isNew) {
    if (await holdsState()) return { state: 'lost' };
    await markNew(client);
  }
  const [known, id] = await client.hmget(metaKey, 'partitions', 'deployment_id');
  const partitions = Number(known ?? defaultPartitions);
  const markers = indices(partitions).map((one) => markerKey(one));
  const marks = await replyPerKey<number>(client, 'exists', markers);
  if (!isNew && marks.includes(0)) return { state: 'lost' };
  return { state: 'ready', partitions, id: id ?? '' };
}

export async function otherVersion(client: RedisClient): Promise<OtherVersion | null> {
  const [partitions, noted] = await client.hmget(metaKey, 'partitions', 'model_version');
  const kept = noted ?? '';
  if (!partitions || kept === keptNow) return null;
  const state = kept.localeCompare(keptNow, 'en', { numeric: true }) > 0 ? 'newer' : 'older';
  return { state, kept, partitions: Number(partitions) };
}

export async function readDeployment(client: RedisClient): Promise<DeploymentRecord | null> {
  const meta = client.hmget(metaKey, 'deployment_id', 'created_at', 'partitions');
  const [deploymentId, createdAt, partitions] = await whileRedisServes(meta);
  if (!deploymentId || !createdAt || !partitions) return null;
  return { deploymentId, createdAt, partitions: Number(partitions) };
}

/** Writes `partitions` last: if the process dies before, the next start repeats the rest. */
async function markNew(client: RedisClient): Promise<void> {
  const now = new Date().toISOString();
  await Promise.all(indices(defaultPartitions).map((one) => client.set(markerKey(one), now, 'NX')));
  await client.hsetnx(metaKey, 'deployment_id', randomUUID());
  await client.hsetnx(metaKey, 'created_at', now);
  await client.hsetnx(metaKey, 'model_version', keptNow);
  await client.hsetnx(metaKey, 'partitions', `${defaultPartitions}`);
}
