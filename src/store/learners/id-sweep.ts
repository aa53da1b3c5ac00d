/** Removes expired event ids of inactive learners. */
import { setTimeout as sleep } from 'node:timers/promises';
import { groupBy, splitIntoParts } from '../../lists.js';
import { scanKeys } from '../redis/commands/bulk-operations.js';
import { acquirePeriodicRun } from '../redis/commands/lock.js';
import { defineScript } from '../redis/commands/script.js';
import type { RedisClient } from '../redis/connection/client.js';
import { eventIdSweepKey } from '../redis/keys.js';
import { entryBytes, idBytes, idWindowSeconds, ledgerField } from './event-ids.js';

/** If a process dies during its turn, ids stay up to 33 hours. */
const sweepHours = 4;
const clockSkewSeconds = 3600;
/** Half a millisecond of Redis at 50 ids each. */
const learnersPerCall = 25;
const pauseMs = 5;

/**
 * Rewrites the remaining ids: a grown hash does not return to its compact form. @returns number of removed
 * ids
 */
export const removeExpiredIds = defineScript(null)<[keys: number, ...args: (string | number)[]], number>(`
local cutoff, removed, further = tonumber(ARGV[1]), 0, string.rep('\\255', ${idBytes})
local function expiredBytes(bucket)
  local at = 1
  while at < #bucket and struct.unpack('<I4', bucket, at + ${idBytes}) <= cutoff do
    if string.sub(bucket, at, at + ${idBytes - 1}) ~= further then removed = removed + 1 end
    at = at + ${entryBytes}
  end
  return at - 1
end
for _, key in ipairs(KEYS) do
  local all, ledger, rest, before = redis.call('HGETALL', key), nil, {}, removed
  for i = 1, #all, 2 do
    local field, bucket = all[i], all[i + 1]
    if field == '${ledgerField}' then ledger = bucket
    else
      local expired = expiredBytes(bucket)
      if expired < #bucket then
        rest[#rest + 1], rest[#rest + 2] = field, string.sub(bucket, expired + 1)
      end
    end
  end
  if removed > before or #rest == 0 then
    redis.call('DEL', key)
    if #rest > 0 then redis.call('HSET', key, '${ledgerField}', ledger, unpack(rest)) end
  end
end
return removed
`);

export async function sweepIds(client: RedisClient, nowMs: number): Promise<number> {
  const cutoff = Math.floor(nowMs / 1000) - idWindowSeconds - clockSkewSeconds;
  let removed = 0;
  for await (const [, found] of scanKeys(client, 'st:{p*}:e:*')) {
    // The pattern may match inside a learner's name.
    const keys = found.filter((key) => /^st:\{p\d+\}:e:/.test(key));
    // A script accesses only one slot of a Cluster.
    for (const slotKeys of groupBy(keys, (key) => key.slice(0, key.indexOf('}'))).values())
      for (const group of splitIntoParts(slotKeys, learnersPerCall))
        removed += await removeExpiredIds(client, group.length, ...group, cutoff);
    await sleep(pauseMs);
  }
  return removed;
}

export const acquireSweepTurn = (client: RedisClient): Promise<boolean> =>
  acquirePeriodicRun(client, eventIdSweepKey, sweepHours * 3600);
