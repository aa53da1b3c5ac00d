/** Waiting for replicas (REDIS_WAIT_REPLICAS): a master that dies takes with it what no replica has yet. */
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

/** Replicas take well under a millisecond; the connection is blocked meanwhile. */
export const waitMs = 1000;

export const notSafe = (): ApiError =>
  unavailable('The answer is not safe on the replicas yet; try again with the same event_id');

/**
 * Does something that ends with a write to the slot of `key`, and waits until replicas have it. WAIT speaks for earlier writes
 * of the same connection, so it must not change: a new master's replicas would confirm what it never had.
 * @param matters whether the result needs the replicas
 * @throws ApiError UNAVAILABLE where replicas did not confirm: it is done, and may be lost with its master
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
 * Reads what others wrote in a partition, and returns it when replicas have it too.
 * It writes as well: since Redis 7.2 WAIT speaks for a connection's own writes alone. @throws ApiError UNAVAILABLE
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
 * The master that serves the key, as far as the client knows, and how many replicas have to confirm. A Cluster does not list
 * replicas that it holds for dead: who took over from a dead master goes on without.
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

/** WAITs that are about to be sent: the partitions that a batch commits on one node share one. */
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
