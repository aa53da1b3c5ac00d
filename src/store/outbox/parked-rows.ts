/** Dead-letter rows: rejected rows and unreadable entries move to a separate stream. */
import { createHash } from 'node:crypto';
import { computeSum } from '../../lists.js';
import { fetchStreamLengths } from '../redis/commands/bulk-operations.js';
import { defineScript } from '../redis/commands/script.js';
import type { RedisClient } from '../redis/connection/client.js';
import { maxParkedRows, outboxKey, parkedKey } from '../redis/keys.js';

export interface OutboxEntry {
  partition: number;
  id: string;
  /** Without outbox columns. */
  rows: readonly Buffer[];
}

export interface RejectedRow {
  id: string;
  row: Buffer;
  reason: string;
}

export async function countParked(redis: RedisClient, streams: readonly string[]) {
  const lengths = await fetchStreamLengths(redis, streams.map(parkedKey));
  /** `fullyParked`: full streams, where rejected rows block later rows. */
  return {
    parked: computeSum(lengths),
    fullyParked: lengths.filter((length) => length >= maxParkedRows).length,
  };
}

/** @returns false if the stream is full */
export const parkEntry = async (
  redis: RedisClient,
  stream: string,
  id: string,
  reason: string,
): Promise<boolean> =>
  (await parkWholeEntry(redis, stream, parkedKey(stream), maxParkedRows, id, reason)) === 1;

/**
 * Parks the rejected rows and removes the entry. Call it when all other rows are stored.
 * @returns false if the stream is full: the entry stays
 */
export async function parkRows(
  redis: RedisClient,
  { partition, id, rows }: OutboxEntry,
  rejected: readonly RejectedRow[],
): Promise<boolean> {
  const stream = outboxKey(partition);
  const sha1 = createHash('sha1');
  for (const [index, row] of rows.entries()) sha1.update(index === 0 ? '' : '\n').update(row);
  const done = await parkRejectedRows(
    ...([redis, stream, parkedKey(stream), maxParkedRows, id, sha1.digest('hex'), rows.length] as const),
    ...rejected.flatMap((one) => [one.id, one.reason, one.row]),
  );
  return done === 1;
}

/** Does nothing if the entry was removed. @returns 0 if the stream is full */
const parkWholeEntry = defineScript(2)<
  [stream: string, parked: string, bound: number, id: string, reason: string],
  0 | 1
>(`
local id = ARGV[2]
local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
if not entry then return 1 end
if redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[1]) then return 0 end
redis.call('XADD', KEYS[2], '*', 'id', id, 'reason', ARGV[3], unpack(entry[2]))
redis.call('XDEL', KEYS[1], id)
return 1
`);

/**
 * Does nothing if the entry was removed or has other rows: after a failover, Redis may assign its id again.
 * @returns 0 if the stream is full
 */
const parkRejectedRows = defineScript(2)<
  [
    ...[stream: string, parked: string, bound: number, entry: string, sha1: string, rows: number],
    // Id, reason and text of each row.
    ...rejected: (string | Buffer)[],
  ],
  0 | 1
>(`
local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
if not entry or entry[2][1] ~= 'r' or redis.sha1hex(entry[2][2]) ~= ARGV[3] then return 1 end
-- All rows of an entry are parked together, so the stream may exceed its bound by the rows of one entry.
if #ARGV > 4 and redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[1]) then return 0 end
for i = 5, #ARGV, 3 do
  redis.call('XADD', KEYS[2], '*', 'id', ARGV[i], 'reason', ARGV[i + 1], 'r', ARGV[i + 2])
end
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('DECRBY', KEYS[1] .. ':rows', ARGV[4])
return 1
`);
