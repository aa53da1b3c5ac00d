/** Waits for replicas (REDIS_WAIT_REPLICAS): a master that dies loses writes that no replica has. */
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

/** Replicas take well under a millisecond. WAIT blocks the connection. */
export const waitMs = 1000;

export const notSafe = (): ApiError =>
  unavailable('The answer is not safe on the replicas yet; try again with the same event_id');

/**
 * Runs work that ends with a write to the slot of `key`, and waits until replicas have it. WAIT covers earlier writes of the
 * same connection, which must not change: a new master's replicas would confirm a write that it never had.
 * @param matters whether the result needs the replicas
 * @throws ApiError UNAVAILABLE if replicas did not confirm: the write is done, and may be lost with its master
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
 * Reads others' writes in a partition, and returns them when replicas have them too. Writes as well: since Redis 7.2, WAIT
 * covers only a connection's own writes.
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

/**
 * The known master of the key, and the number of replicas that must confirm. A Cluster does not list dead replicas: after a
 * failover, the new master continues without them.
 */
function placeOf(client: RedisClient, key: string): { node: Redis | undefined; replicas: number } {
  const wanted = replicasToWaitFor(client);
  if (!isCluster(client)) return { node: client, replicas: wanted };
  const place = placeInCluster(client, key);
  const node = client
    .nodes('master')
    .find(({ options: { host, port } }) => `${host}:${port}` === place?.master);
  return { node, replicas: Math.min(wanted, place?.replicas ?? wanted) };
}

/** WAITs about to be sent: partitions that a batch commits on one node share one. */
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
