import { type LastRow, lastRowOf } from '../../contracts/outbox-ids.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { markerKey, outboxKey } from '../redis/keys.js';

/** KEYS: marker, outbox. Result: id of the last row and Unix milliseconds; nothing where the marker is absent. */
const lastRowScript = `
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local time, id = redis.call('TIME'), '0-0'
if redis.call('EXISTS', KEYS[2]) == 1 then
  local facts = redis.call('XINFO', 'STREAM', KEYS[2])
  for i = 1, #facts, 2 do if facts[i] == 'last-generated-id' then id = facts[i + 1] end end
end
return { id, time[1] .. string.format('%03d', math.floor(time[2] / 1000)) }
`;

/** Of each partition that has its marker: others are new, or have to be rebuilt. @throws ApiError UNAVAILABLE */
export async function lastRows(client: RedisClient, partitions: number): Promise<LastRow[]> {
  const asked = Array.from({ length: partitions }, (_, partition) => lastRow(client, partition));
  return (await Promise.all(asked)).flatMap((row) => row ?? []);
}

async function lastRow(client: RedisClient, partition: number): Promise<LastRow | null> {
  const keys = [markerKey(partition), outboxKey(partition)];
  const found = (await whileRedisServes(client.eval(lastRowScript, keys.length, ...keys))) as
    | [id: string, ms: string]
    | null;
  if (found === null) return null;
  return { partition, ...lastRowOf(found[0]), askedAt: Number(found[1]) };
}
