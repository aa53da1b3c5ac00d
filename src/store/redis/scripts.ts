/** Lua scripts: each is one atomic verb. */
import { idBytes } from '../learners/event-ids.js';
import { entryBytes, ledgerField } from '../learners/learner-ids.js';

/**
 * Forgets learners' event ids from the oldest of each bucket on, as far as they are over. What is left is written anew: a
 * hash that outgrew its compact form does not return to it by itself.
 * KEYS: hashes of event ids. ARGV: forget ids that were taken at this Unix second or before.
 * Result: number forgotten.
 */
export const sweepIdsScript = `
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
`;

/**
 * Sets a field of a hash where nobody else has set it meanwhile.
 * KEYS: the hash. ARGV: field, value that it is expected to have ('': none), new value.
 * Result: 1 where it was set.
 */
export const replaceFieldScript = `
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`;

/**
 * Takes from an API key's quota; the window opens with its first request.
 * KEYS: the key's counter. ARGV: amount, window in milliseconds.
 * Result: taken so far in this window, milliseconds until it ends.
 */
export const takeQuotaScript = `
local taken = redis.call('INCRBY', KEYS[1], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  left = tonumber(ARGV[2])
end
return { taken, left }
`;

/**
 * Appends to a stream of the journal as far as there is room.
 * KEYS: the stream. ARGV: most entries that it may hold, kind, then rows.
 * Result: number of rows for which there was no room.
 */
export const appendJournalScript = `
local rows = #ARGV - 2
local room = math.max(0, tonumber(ARGV[1]) - redis.call('XLEN', KEYS[1]))
local kept = math.min(room, rows)
for i = 3, 2 + kept do redis.call('XADD', KEYS[1], '*', 'k', ARGV[2], 'r', ARGV[i]) end
return rows - kept
`;

/**
 * Reads whole hashes into one string, which Redis packs in C: parsed one by one, the fields of learners cost several
 * times what is computed from them.
 * KEYS: hashes. ARGV: beyond this many fields and values no further hash is read, so that nobody waits long for Redis.
 * Result: MessagePack, for each of the first hashes, one or more, a list of its fields and values in turn.
 */
export const readHashesScript = `
local most, read, hashes = tonumber(ARGV[1]), 0, {}
for i = 1, #KEYS do
  hashes[i] = redis.call('HGETALL', KEYS[i])
  read = read + #hashes[i]
  if read >= most then break end
end
return cmsgpack.pack(hashes)
`;
