import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { DeploymentFacts } from '../../contracts/access.js';
import { listpackBytes } from '../../contracts/redis.js';
import { isCluster, type RedisClient, whileRedisServes } from './client.js';
import { keptNow, markerKey, metaKey } from './keys.js';

/** Partitions of a new deployment; stored at the first start and fixed from then on. */
export const defaultPartitions = 16;

export type Deployment =
  /** `id` is empty where a version made it that gave none. */
  | { readonly state: 'ready'; readonly partitions: number; readonly id: string }
  /** Redis has no state although ClickHouse holds some: it came back empty and has to be rebuilt. */
  | { readonly state: 'emptied' }
  /** The learners are kept as another version of the service does. */
  | OtherVersion;

export interface OtherVersion {
  readonly state: 'older' | 'newer';
  /** As `keptNow`. */
  readonly kept: string;
  readonly partitions: number;
}

/** Why this version of the service cannot use what Redis holds, for people. */
export function unusableReason(deployment: Exclude<Deployment, { state: 'ready' }>): string {
  if (deployment.state === 'emptied')
    return 'Redis came back empty while ClickHouse has answers, goals, catalogues or revoked keys: npm run rebuild restores it';
  const { state, kept } = deployment;
  const found = `Redis holds learners of version ${kept}, this version of the service keeps version ${keptNow}`;
  return state === 'newer'
    ? `${found}: start the newer one`
    : `${found}: drain the outbox with the version before (health: outbox_length 0), stop it, then run npm run rebuild`;
}

/**
 * Tells whether Redis belongs to a running deployment, and marks a new one.
 *
 * An emptied Redis looks like a new one, and would make everybody a new learner in silence. What tells them apart
 * is ClickHouse: only where it holds none of that is a Redis without marks taken for new. Several processes may ask
 * at once; the first to write decides, and all read what it wrote. Learners that are kept otherwise are not looked for
 * behind their marks: with or without all of them, it is the other version's to say.
 *
 * @param holdsState whether ClickHouse holds what was in Redis; asked only where Redis has no marks
 */
export async function openDeployment(
  client: RedisClient,
  holdsState: () => Promise<boolean>,
): Promise<Deployment> {
  const other = await otherVersion(client);
  if (other !== null) return other;
  const stored = await client.hget(metaKey, 'partitions');
  if (stored === null && (await holdsState())) return { state: 'emptied' };
  if (stored === null) await markNew(client);
  const [known, id] = await client.hmget(metaKey, 'partitions', 'deployment_id');
  const partitions = Number(known ?? defaultPartitions);
  if (stored !== null && !(await allMarked(client, partitions))) return { state: 'emptied' };
  return { state: 'ready', partitions, id: id ?? '' };
}

/** The deployment where its learners are kept otherwise; null where they are not, or there is none. */
export async function otherVersion(client: RedisClient): Promise<OtherVersion | null> {
  const [partitions, noted] = await client.hmget(metaKey, 'partitions', 'model_version');
  const kept = noted ?? '';
  if (!partitions || kept === keptNow) return null;
  const state = kept.localeCompare(keptNow, 'en', { numeric: true }) > 0 ? 'newer' : 'older';
  return { state, kept, partitions: Number(partitions) };
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
  await client.hsetnx(metaKey, 'model_version', keptNow);
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
  const found = (await serversTold(client)).map(warningsOf);
  return [...new Set(found.flat())];
}

/**
 * What each server tells of itself. Of a Cluster's nodes, one whose connection is still being made is waited for, and
 * one that cannot be asked has no say.
 */
async function serversTold(client: RedisClient): Promise<Told[]> {
  if (!isCluster(client)) return [await ask(client)];
  const asked = await Promise.allSettled(client.nodes().map(ask));
  return asked.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

interface Told {
  readonly info: string;
  /** Bytes of a value from which on a hash is no listpack; null where CONFIG is not allowed. */
  readonly listpackValue: number | null;
}

async function ask(node: Redis): Promise<Told> {
  const [info, config] = await Promise.allSettled([node.info(), node.config('GET', 'hash-max-*-value')]);
  if (info.status === 'rejected') throw info.reason;
  const [, value] = config.status === 'fulfilled' ? (config.value as string[]) : [];
  return { info: info.value, listpackValue: value === undefined ? null : Number(value) };
}

function warningsOf({ info, listpackValue }: Told): string[] {
  const warnings: string[] = [];
  if (listpackValue !== null && listpackValue < listpackBytes) {
    warnings.push(
      `Redis has hash-max-listpack-value ${listpackValue}: a learner takes a third more memory than it has to, event ids up to twice as much. Set ${listpackBytes}`,
    );
  }
  const policy = /^maxmemory_policy:(.*?)\r?$/m.exec(info)?.[1] ?? 'unknown';
  if (policy !== 'noeviction') {
    warnings.push(
      `Redis has maxmemory-policy ${policy}: when its memory is full it drops learners' states. Set noeviction`,
    );
  }
  if (/^maxmemory:0\r?$/m.test(info)) {
    warnings.push(
      'Redis has no maxmemory: nothing refuses answers before the machine is out of memory. Set maxmemory',
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
