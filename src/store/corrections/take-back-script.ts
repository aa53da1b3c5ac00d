/** The Lua script that takes one answer back. */
import { markerName } from '../redis/keys.js';
import { defineScript } from '../redis/script.js';

/**
 * Writes a learner anew, without one answer, and orders what follows from it: the correction, and behind it the rows that
 * were computed anew. The ids of answers stay taken.
 * KEYS: the partition's prefix. ARGV: name of the learner, version that was read, outbox bound, journal bound, month of
 *   arrival of the oldest row that is written again (as 202601), correction, the journal's row after its time, how many
 *   rows; then lists, each behind the number of its values: fields and records, items and their records of the even and of
 *   the odd generation, entries of rows, fields of the partition's accepted answers and what they grow by.
 * Result: what became of it: `done`, `conflict` (somebody else wrote the learner), `archived` (answers of that month are
 *   sums by now), `full` (outbox or journal), `emptied` (Redis came back empty).
 */
export const takeBack = defineScript(1)<[prefix: string, ...args: (string | number | Buffer)[]], string>(`
local prefix, name, rows = KEYS[1], ARGV[1], tonumber(ARGV[8])
local key, out, journal = prefix .. ':l:' .. name, prefix .. ':out', prefix .. ':journal'
if redis.call('EXISTS', prefix .. ':${markerName}') == 0 then return 'emptied' end
local record = redis.call('HGET', key, 'L')
if not record or struct.unpack('<I4', record, 5) ~= tonumber(ARGV[2]) then return 'conflict' end
local fence = redis.call('ZSCORE', prefix .. ':archived', 'month')
if fence and tonumber(fence) >= tonumber(ARGV[5]) then return 'archived' end
if tonumber(redis.call('GET', out .. ':rows') or 0) + rows > tonumber(ARGV[3]) then return 'full' end
if redis.call('XLEN', journal) >= tonumber(ARGV[4]) then return 'full' end

-- The places of the next list.
local from, to = nil, 8
local function nextList() from, to = to + 2, to + 1 + tonumber(ARGV[to + 1]) end
local function replace(hash)
  nextList()
  redis.call('DEL', hash)
  -- Lua hands so many over on its stack.
  for i = from, to, 1000 do redis.call('HSET', hash, unpack(ARGV, i, math.min(i + 999, to))) end
end
local goal = redis.call('HGET', key, 'G')
replace(key)
if goal then redis.call('HSET', key, 'G', goal) end
replace(prefix .. ':h0:' .. name)
replace(prefix .. ':h1:' .. name)
redis.call('XADD', out, '*', 'c', ARGV[6])
nextList()
for i = from, to do redis.call('XADD', out, '*', 'r', ARGV[i]) end
redis.call('INCRBY', out .. ':rows', rows)
nextList()
for i = from, to, 2 do redis.call('HINCRBY', prefix .. ':accepted', ARGV[i], ARGV[i + 1]) end
local time = redis.call('TIME')
local now = time[1] .. string.format('%03d', math.floor(time[2] / 1000))
redis.call('XADD', journal, '*', 'k', 'taken_back', 'r', now .. '\\t' .. ARGV[7])
return 'done'
`);
