/** REDIS_WAIT_REPLICAS: a dying master loses writes that no replica has. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type ApiError, unavailable } from '../../errors.js';
import {
  isCluster,
  placeInCluster,
  type RedisClient,
  replicasToWaitFor,
  whileRedisServes,
} from './client.js';
import { waitKey } from './keys.js';

/** WAIT blocks the connection. */
export const waitMs = 1000;

export const notSafe = (): ApiError =>
  unavailable('The answer is not safe on the replicas yet; try again with the same event_id');

/**
 * Runs work that ends with a write to the slot of `key`, then waits for replicas. WAIT covers earlier writes
 * of the same connection.
 * @throws ApiError UNAVAILABLE if replicas did not confirm, or if the connection changed: replicas of a new
 * master confirm writes that this master never had. The write may be lost
 */
export async function replicated<Value>(
  client: RedisClient,
  key: string,
  work: () => Promise<Value>,
  matters: (value: Value) => boolean = () => true,
): Promise<Value> {
  if (replicasToWaitFor(client) === 0) return work();
  const { node, replicas: wanted } = placeOf(client, key);
  const connection = node?.stream;
  const value = await work();
  if (wanted === 0 || !matters(value)) return value;
  const reached = node === undefined ? 0 : await whileRedisServes(confirmed(node, wanted));
  if (reached >= wanted && placeOf(client, key).node === node && node?.stream === connection) return value;
  throw notSafe();
}

/**
 * Returns writes of other connections once replicas have them. Also writes a key: since Redis 7.2, WAIT
 * covers only writes of the same connection.
 */
export function readReplicated<Value>(
  client: RedisClient,
  partition: number,
  read: () => Promise<Value>,
  matters: (value: Value) => boolean = () => true,
): Promise<Value> {
  if (replicasToWaitFor(client) === 0) return read();
  const key = waitKey(partition);
  const readAndWrite = async (): Promise<Value> => {
    const value = await read();
    if (matters(value)) await whileRedisServes(client.set(key, ''));
    return value;
  };
  return replicated(client, key, readAndWrite, matters);
}

/** A Cluster does not list dead replicas: the master continues without them. */
function placeOf(client: RedisClient, key: string): { node: Redis | undefined; replicas: number } {
  const wanted = replicasToWaitFor(client);
  if (!isCluster(client)) return { node: client, replicas: wanted };
  const place = placeInCluster(client, key);
  const node = client
    .nodes('master')
    .find(({ options: { host, port } }) => `${host}:${port}` === place?.master);
  return { node, replicas: Math.min(wanted, place?.replicas ?? wanted) };
}

/** Partitions of a batch on the same node share a WAIT. */
const next = new WeakMap<Redis, Promise<number>>();

function confirmed(node: Redis, wanted: number): Promise<number> {
  const waiting = next.get(node);
  if (waiting !== undefined) return waiting;
  const shared = nextTurn().then(() => {
    next.delete(node);
    return node.wait(wanted, waitMs);
  });
  next.set(node, shared);
  return shared;
}
