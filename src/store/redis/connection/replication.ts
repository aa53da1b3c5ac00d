/** REDIS_WAIT_REPLICAS: a dying master loses writes that no replica has. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type ApiError, unavailable } from '../../../errors.js';
import { replicationProbeKey } from '../keys.js';
import {
  findSlotMaster,
  getRequiredReplicas,
  isCluster,
  mapRedisErrors,
  type RedisClient,
} from './client.js';

/** WAIT blocks the connection. */
export const replicaTimeoutMs = 1000;

export const createReplicationError = (): ApiError =>
  unavailable('The change is not replicated yet; retry with the same event_id.');

/**
 * Runs work that ends with a write to the slot of `key`, then waits for replicas. WAIT covers earlier writes
 * of the same connection.
 * @throws ApiError UNAVAILABLE if replicas did not confirm, or if the connection changed: replicas of a new
 * master confirm writes that this master never had. The write may be lost
 */
export async function withReplication<Value>(
  client: RedisClient,
  key: string,
  work: () => Promise<Value>,
  needsReplicas: (value: Value) => boolean = () => true,
): Promise<Value> {
  if (getRequiredReplicas(client) === 0) return work();
  const { node, replicas: required } = findMaster(client, key);
  const connection = node?.stream;
  const value = await work();
  if (required === 0 || !needsReplicas(value)) return value;
  const confirmed = node === undefined ? 0 : await mapRedisErrors(waitForReplicas(node, required));
  if (confirmed >= required && findMaster(client, key).node === node && node?.stream === connection)
    return value;
  throw createReplicationError();
}

/**
 * Returns writes of other connections once replicas have them. Also writes a key: since Redis 7.2, WAIT
 * covers only writes of the same connection.
 */
export function readReplicated<Value>(
  client: RedisClient,
  partition: number,
  read: () => Promise<Value>,
  needsReplicas: (value: Value) => boolean = () => true,
): Promise<Value> {
  if (getRequiredReplicas(client) === 0) return read();
  const key = replicationProbeKey(partition);
  const readAndWrite = async (): Promise<Value> => {
    const value = await read();
    if (needsReplicas(value)) await mapRedisErrors(client.set(key, ''));
    return value;
  };
  return withReplication(client, key, readAndWrite, needsReplicas);
}

/** A Cluster does not list dead replicas: the master continues without them. */
function findMaster(client: RedisClient, key: string): { node: Redis | undefined; replicas: number } {
  const required = getRequiredReplicas(client);
  if (!isCluster(client)) return { node: client, replicas: required };
  const slot = findSlotMaster(client, key);
  const node = client
    .nodes('master')
    .find(({ options: { host, port } }) => `${host}:${port}` === slot?.master);
  return { node, replicas: Math.min(required, slot?.replicas ?? required) };
}

/** Partitions of a batch on the same node share a WAIT. */
const pendingWaits = new WeakMap<Redis, Promise<number>>();

function waitForReplicas(node: Redis, required: number): Promise<number> {
  const pending = pendingWaits.get(node);
  if (pending !== undefined) return pending;
  const shared = nextTurn().then(() => {
    pendingWaits.delete(node);
    return node.wait(required, replicaTimeoutMs);
  });
  pendingWaits.set(node, shared);
  return shared;
}
