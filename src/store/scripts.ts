/**
 * The Lua scripts: each is one atomic verb. They move bytes and compare versions; no model is computed in Redis.
 *
 * Arguments are packed into one value (packer.ts), because a few large arguments cost far less to send and to parse
 * than many small ones, and lists in it go to commands as they are.
 */

import { idIndex, splitting } from './id-scripts.js';
import { markerName } from './keys.js';

const learnerKeys = `
local function learnerKey(prefix, name) return prefix .. ':l:' .. name end
local function itemsKey(prefix, generation, name) return prefix .. ':h' .. generation .. ':' .. name end
`;

/**
 * Reads what a batch needs of its learners.
 * KEYS: prefixes of the partitions; all other keys begin with one of them, so they share its slot.
 * ARGV: the request: import id or '', then per learner: prefix index, name, fields; ids; items.
 * Result: a list, in the request's order, absent things false; per learner: a list of the fields' records; lists of
 * the ids' answers, of the items' records of the even and of the odd generation; where there is an import, its mark.
 */
export const loadScript = `
${learnerKeys}
${idIndex}
local importId, learners = unpack(cmsgpack.unpack(ARGV[1]))
local out = {}
for i = 1, #learners do
  local prefixIndex, name, fields, ids, items = unpack(learners[i])
  local prefix = KEYS[prefixIndex]
  local key = learnerKey(prefix, name)
  out[#out + 1] = redis.call('HMGET', key, unpack(fields))
  if #ids > 0 then
    local index, answers = indexOf(prefix), {}
    for j = 1, #ids do answers[j] = redis.call('HGET', bucketOf(index, hashOf(ids[j])), ids[j]) end
    out[#out + 1] = answers
  end
  if #items > 0 then
    out[#out + 1] = redis.call('HMGET', itemsKey(prefix, 0, name), unpack(items))
    out[#out + 1] = redis.call('HMGET', itemsKey(prefix, 1, name), unpack(items))
  end
  if importId ~= '' then out[#out + 1] = redis.call('HGET', prefix .. ':import:' .. importId, key) end
end
return cmsgpack.pack(out)
`;

/**
 * Commits a batch: per learner all or nothing, and only if nobody else wrote that learner since it was read.
 * KEYS: prefixes of the partitions.
 * ARGV: the request: import id or '', outbox bound, then per learner: prefix index, name, expected version (0: new);
 * fields and their records in turn; rows; ids and their answers in turn; parities of the generations of items that
 * are forgotten; items and their records in turn, of the even and of the odd generation; import mark or ''; fields of
 * the partition's accepted answers and what they grow by, in turn.
 * Result: a digit per learner: 0 committed, 1 somebody else wrote it, 2 outbox full, 3 Redis came back empty, 4 an id
 * is taken.
 */
export const commitScript = `
${learnerKeys}
${idIndex}
${splitting}
local importId, outboxBound, learners = unpack(cmsgpack.unpack(ARGV[1]))

-- Takes the ids for their answers; false, and nothing is done, where one is taken already.
local function takeIds(prefix, ids)
  local index = indexOf(prefix)
  for i = 1, #ids, 2 do
    if redis.call('HSETNX', bucketOf(index, hashOf(ids[i])), ids[i], ids[i + 1]) == 0 then
      for j = 1, i - 2, 2 do redis.call('HDEL', bucketOf(index, hashOf(ids[j])), ids[j]) end
      return false
    end
  end
  for i = 1, #ids, 2 do index.taken[#index.taken + 1] = ids[i] end
  return true
end

-- Puts the ids that were taken into the order of their arrival.
local function queueIds(index)
  if #index.taken == 0 then return end
  local length, before = redis.call('RPUSH', index.queue, unpack(index.taken)), index.count
  while length > index.count * idsPerBucket do splitBucket(index) end
  if index.count > before then redis.call('SET', index.bucket .. 'n', index.count) end
end

local accepted = {}
local function noteAccepted(prefix, counts)
  local sums = accepted[prefix] or {}
  accepted[prefix] = sums
  for i = 1, #counts, 2 do sums[counts[i]] = (sums[counts[i]] or 0) + counts[i + 1] end
end

local room = {}
local function roomIn(prefix)
  if not room[prefix] then room[prefix] = outboxBound - redis.call('XLEN', prefix .. ':out') end
  return room[prefix]
end

local restored = {}
-- A learner may be there again while event ids are not: nothing is counted before all of it is.
local function isRestored(prefix)
  if restored[prefix] == nil then restored[prefix] = redis.call('EXISTS', prefix .. ':${markerName}') == 1 end
  return restored[prefix]
end

local function refusal(key, prefix, expected, ids)
  local record = redis.call('HGET', key, 'L')
  local version = record and struct.unpack('<I4', record, 5) or 0
  if version ~= expected then return '1' end
  if roomIn(prefix) <= 0 then return '2' end
  if not isRestored(prefix) then return '3' end
  if #ids > 0 and not takeIds(prefix, ids) then return '4' end
  return nil
end

local function commit(prefix, name, key, fields, rows, forgotten, even, odd, mark)
  redis.call('HSET', key, unpack(fields))
  local out = prefix .. ':out'
  for i = 1, #rows do redis.call('XADD', out, '*', 'r', rows[i]) end
  room[prefix] = room[prefix] - #rows
  for i = 1, #forgotten do redis.call('DEL', itemsKey(prefix, forgotten[i], name)) end
  if #even > 0 then redis.call('HSET', itemsKey(prefix, 0, name), unpack(even)) end
  if #odd > 0 then redis.call('HSET', itemsKey(prefix, 1, name), unpack(odd)) end
  if mark ~= '' then redis.call('HSET', prefix .. ':import:' .. importId, key, mark) end
end

local statuses = {}
for i = 1, #learners do
  local prefixIndex, name, expected, fields, rows, ids, forgotten, even, odd, mark, counts = unpack(learners[i])
  local prefix = KEYS[prefixIndex]
  local key = learnerKey(prefix, name)
  local refused = refusal(key, prefix, expected, ids)
  if not refused then
    commit(prefix, name, key, fields, rows, forgotten, even, odd, mark)
    noteAccepted(prefix, counts)
  end
  statuses[i] = refused or '0'
end
for _, index in pairs(indexes) do queueIds(index) end
for prefix, sums in pairs(accepted) do
  for field, count in pairs(sums) do redis.call('HINCRBY', prefix .. ':accepted', field, count) end
end
return table.concat(statuses)
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
