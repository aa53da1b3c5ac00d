/** The Lua script that takes one answer back. */
import { markerName } from './keys.js';

/**
 * Writes a learner anew, without one answer, and orders what follows from it: the correction, and behind it the rows that
 * were computed anew. The ids of answers stay taken.
 * KEYS: the partition's prefix. ARGV: the request: name of the learner, version that was read, outbox bound, journal
 *   bound, month of arrival of the oldest row that is written again (as 202601), correction, the journal's row after its
 *   time; then, each in pieces: fields and records, rows, items and their records of the even and of the odd generation;
 *   fields of the partition's accepted answers and what they grow by.
 * Result: what became of it: `done`, `conflict` (somebody else wrote the learner), `archived` (answers of that month are
 *   sums by now), `full` (outbox or journal), `emptied` (Redis came back empty).
 */
export const takeBackScript = `
local request = cmsgpack.unpack(ARGV[1])
local name, expected, outboxBound, journalBound, month, correction, note = unpack(request, 1, 7)
local records, rows, even, odd, accepted = unpack(request, 8, 12)
local prefix = KEYS[1]
local key, out, journal = prefix .. ':l:' .. name, prefix .. ':out', prefix .. ':journal'
if redis.call('EXISTS', prefix .. ':${markerName}') == 0 then return 'emptied' end
local record = redis.call('HGET', key, 'L')
if not record or struct.unpack('<I4', record, 5) ~= expected then return 'conflict' end
local fence = redis.call('ZSCORE', prefix .. ':archived', 'month')
if fence and tonumber(fence) >= month then return 'archived' end
local length = 1
for i = 1, #rows do length = length + #rows[i] end
if redis.call('XLEN', out) + length > outboxBound then return 'full' end
if redis.call('XLEN', journal) >= journalBound then return 'full' end

local function replace(hash, pieces)
  redis.call('DEL', hash)
  for i = 1, #pieces do redis.call('HSET', hash, unpack(pieces[i])) end
end
local goal = redis.call('HGET', key, 'G')
replace(key, records)
if goal then redis.call('HSET', key, 'G', goal) end
replace(prefix .. ':h0:' .. name, even)
replace(prefix .. ':h1:' .. name, odd)
redis.call('XADD', out, '*', 'c', correction)
for i = 1, #rows do
  for j = 1, #rows[i] do redis.call('XADD', out, '*', 'r', rows[i][j]) end
end
for i = 1, #accepted, 2 do redis.call('HINCRBY', prefix .. ':accepted', accepted[i], accepted[i + 1]) end
local time = redis.call('TIME')
local now = time[1] .. string.format('%03d', math.floor(time[2] / 1000))
redis.call('XADD', journal, '*', 'k', 'taken_back', 'r', now .. '\\t' .. note)
return 'done'
`;
