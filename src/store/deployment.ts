import { randomUUID } from 'node:crypto';
import type { DeploymentFacts } from '../services/deployment-facts.js';
import { isCluster, type RedisClient, whileRedisServes } from './client.js';
import { markerKey, metaKey } from './keys.js';

/** Partitions of a new deployment; stored at the first start and fixed from then on. */
export const defaultPartitions = 16;

export type Deployment =
  /** `id` is empty where a version made it that gave none. */
  | { readonly state: 'ready'; readonly partitions: number; readonly id: string }
  /** Redis has no state although ClickHouse holds some: it came back empty and has to be rebuilt. */
  | { readonly state: 'emptied' };

/** For people. */
export const emptiedReason =
  'Redis came back empty while ClickHouse has answers, goals or catalogues: npm run rebuild restores it';

/**
 * Tells whether Redis belongs to a running deployment, and marks a new one.
 *
 * An emptied Redis looks like a new one, and would make everybody a new learner in silence. What tells them apart
 * is ClickHouse: only where it holds none of that is a Redis without marks taken for new. Several processes may ask
 * at once; the first to write decides, and all read what it wrote.
 *
 * @param holdsState whether ClickHouse holds what was in Redis; asked only where Redis has no marks
 */
export async function openDeployment(
  client: RedisClient,
  holdsState: () => Promise<boolean>,
): Promise<Deployment> {
  const stored = await client.hget(metaKey, 'partitions');
  if (stored === null && (await holdsState())) return { state: 'emptied' };
  if (stored === null) await markNew(client);
  const [known, id] = await client.hmget(metaKey, 'partitions', 'deployment_id');
  const partitions = Number(known ?? defaultPartitions);
  if (stored !== null && !(await allMarked(client, partitions))) return { state: 'emptied' };
  return { state: 'ready', partitions, id: id ?? '' };
}

/** Null where Redis has none. */
export async function readDeployment(client: RedisClient): Promise<DeploymentFacts | null> {
  const [deploymentId, createdAt, partitions] = await whileRedisServes(
    client.hmget(metaKey, 'deployment_id', 'created_at', 'partitions'),
  );
  if (!deploymentId || !createdAt || !partitions) return null;
  return { deploymentId, createdAt, partitions: Number(partitions) };
}

/** The marks come before the meta key: a start that dies in between is simply repeated by the next. */
async function markNew(client: RedisClient): Promise<void> {
  const now = new Date().toISOString();
  const marks = partitionsOf(defaultPartitions).map((partition) =>
    client.set(markerKey(partition), now, 'NX'),
  );
  await Promise.all(marks);
  await client.hsetnx(metaKey, 'deployment_id', randomUUID());
  await client.hsetnx(metaKey, 'created_at', now);
  await client.hsetnx(metaKey, 'partitions', `${defaultPartitions}`);
}

async function allMarked(client: RedisClient, partitions: number): Promise<boolean> {
  const found = await Promise.all(
    partitionsOf(partitions).map((partition) => client.exists(markerKey(partition))),
  );
  return found.every((exists) => exists === 1);
}

const partitionsOf = (partitions: number): number[] => Array.from({ length: partitions }, (_, i) => i);

/** What is at risk with the way this Redis, or any node of the Cluster, is set up; empty where nothing is. */
export async function redisWarnings(client: RedisClient): Promise<string[]> {
  const found = (await serversInfo(client)).map(warningsOf);
  return [...new Set(found.flat())];
}

/**
 * What each server tells of itself. Of a Cluster's nodes, one whose connection is still being made is waited for, and
 * one that cannot be asked has no say.
 */
async function serversInfo(client: RedisClient): Promise<string[]> {
  if (!isCluster(client)) return [await client.info()];
  const asked = await Promise.allSettled(client.nodes().map((node) => node.info()));
  return asked.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

function warningsOf(info: string): string[] {
  const warnings: string[] = [];
  const policy = /^maxmemory_policy:(.*?)\r?$/m.exec(info)?.[1] ?? 'unknown';
  if (policy !== 'noeviction') {
    warnings.push(
      `Redis has maxmemory-policy ${policy}: when its memory is full it drops learners' states. Set noeviction`,
    );
  }
  const appendOnly = /^aof_enabled:1/m.test(info);
  if (!appendOnly) {
    warnings.push(
      'Redis has no append-only file: answers since its last snapshot are lost when it stops. Set appendonly yes',
    );
  }
  return warnings;
}
