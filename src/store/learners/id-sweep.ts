/** Removes expired event ids of inactive learners. */
import { setTimeout as sleep } from 'node:timers/promises';
import { groupBy, splitIntoParts } from '../../lists.js';
import { scanKeys } from '../redis/bulk-operations.js';
import type { RedisClient } from '../redis/client.js';
import { eventIdSweepKey } from '../redis/keys.js';
import { acquirePeriodicRun } from '../redis/lock.js';
import { defineScript } from '../redis/script.js';
import { entryBytes, idBytes, idWindowSeconds, ledgerField } from './event-ids.js';

/** If a process dies during its turn, ids stay up to 33 hours. */
const sweepHours = 4;
const clockDifferenceSeconds = 3600;
/** Half a millisecond of Redis at 50 ids each. */
const together = 25;
const pauseMs = 5;

/**
 * Rewrites the remaining ids: a grown hash does not return to its compact form. @returns number of removed
 * ids
 */
export const forgetIds = defineScript(null)<[keys: number, ...args: (string | number)[]], number>(`
local cutoff, forgotten = tonumber(ARGV[1]), 0
local function over(bucket)
  local at = 1
  while at < #bucket and struct.unpack('<I4', bucket, at + ${idBytes}) <= cutoff do at = at + ${entryBytes} end
  return at - 1
end
for _, key in ipairs(KEYS) do
  local all, ledger, left, before = redis.call('HGETALL', key), nil, {}, forgotten
  for i = 1, #all, 2 do
    local field, bucket = all[i], all[i + 1]
    if field == '${ledgerField}' then ledger = bucket
    else
      local ended = over(bucket)
      forgotten = forgotten + ended / ${entryBytes}
      if ended < #bucket then
        left[#left + 1], left[#left + 2] = field, string.sub(bucket, ended + 1)
      end
    end
  end
  if forgotten > before or #left == 0 then
    redis.call('DEL', key)
    if #left > 0 then redis.call('HSET', key, '${ledgerField}', ledger, unpack(left)) end
  end
end
return forgotten
`);

export async function sweepIds(client: RedisClient, nowMs: number): Promise<number> {
  const cutoff = Math.floor(nowMs / 1000) - idWindowSeconds - clockDifferenceSeconds;
  let forgotten = 0;
  for await (const [, found] of scanKeys(client, 'st:{p*}:e:*')) {
    // The pattern may match inside a learner's name.
    const keys = found.filter((key) => /^st:\{p\d+\}:e:/.test(key));
    // A script accesses only one slot of a Cluster.
    for (const own of groupBy(keys, (key) => key.slice(0, key.indexOf('}'))).values())
      for (const group of splitIntoParts(own, together))
        forgotten += await forgetIds(client, group.length, ...group, cutoff);
    await sleep(pauseMs);
  }
  return forgotten;
}

export const takeSweepTurn = (client: RedisClient): Promise<boolean> =>
  acquirePeriodicRun(client, eventIdSweepKey, sweepHours * 3600);
