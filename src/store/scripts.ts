/**
 * The Lua scripts: each is one atomic verb. They move bytes and compare versions; no model is computed in Redis.
 *
 * Arguments are packed into one binary string (see packer.ts), because a few large arguments cost far less to
 * send and to parse than many small ones. `text` below is a 2-byte length and that many bytes.
 */

/**
 * Event ids of a partition. They live in small hashes (`PREFIX:i:B`, field = 10 bytes of id hash, value = the
 * first answer) that Redis keeps as listpacks, for a plain key per id would cost three times the memory. The
 * number of those hashes grows one at a time with the number of ids (linear hashing), so each stays near 40
 * fields. `PREFIX:i:q` lists the ids in order of arrival, for forgetting the oldest.
 */
const idIndex = `
local idsPerBucket = 40
local function bucketCount(prefix)
  return tonumber(redis.call('GET', prefix .. ':i:n') or 1)
end
local function bucketOf(id, count)
  local hash = struct.unpack('<I4', id)
  local span = 1
  while span * 2 <= count do span = span * 2 end
  local bucket = hash % (span * 2)
  if bucket >= count then bucket = hash % span end
  return bucket, span
end
local function bucketKey(prefix, bucket) return prefix .. ':i:' .. bucket end
local function findId(prefix, id)
  return redis.call('HGET', bucketKey(prefix, bucketOf(id, bucketCount(prefix))), id)
end
`;

const reader = `
local data, pos = ARGV[1], 1
local function u16() local v v, pos = struct.unpack('<I2', data, pos) return v end
local function u32() local v v, pos = struct.unpack('<I4', data, pos) return v end
local function text() local v v, pos = struct.unpack('<I2c0', data, pos) return v end
local function learnerKey(prefix, name) return prefix .. ':l:' .. name end
local function itemsKey(prefix, generation, name) return prefix .. ':h' .. generation .. ':' .. name end
local function fixed(n) local v = string.sub(data, pos, pos + n - 1) pos = pos + n return v end
`;

/**
 * Reads what a batch needs of its learners.
 * KEYS: prefixes of the partitions; all other keys begin with one of them, so they share its slot.
 * ARGV: the request:
 *   text importId, u16 learners, each: u16 prefix index, text name; u16 fields, each text; u16 ids, each 10 bytes;
 *   u16 items, each 8 bytes.
 * Result: one string, in the request's order, absent things empty:
 *   per learner: its record, each field's record, each id's answer, each item's records of the even and of the odd
 *   generation, its import mark if there is an import; all text.
 */
export const loadScript = `
${reader}
${idIndex}
local importId = text()
local out = {}
local function give(value)
  value = value or ''
  out[#out + 1] = struct.pack('<I2', #value) .. value
end
for learner = 1, u16() do
  local prefix = KEYS[u16()]
  local name = text()
  local key = learnerKey(prefix, name)
  local fields = { 'L' }
  for i = 1, u16() do fields[i + 1] = text() end
  for _, value in ipairs(redis.call('HMGET', key, unpack(fields))) do give(value) end
  for _ = 1, u16() do give(findId(prefix, fixed(10))) end
  local items = {}
  for i = 1, u16() do items[i] = fixed(8) end
  if #items > 0 then
    local even = redis.call('HMGET', itemsKey(prefix, 0, name), unpack(items))
    local odd = redis.call('HMGET', itemsKey(prefix, 1, name), unpack(items))
    for i = 1, #items do give(even[i]) give(odd[i]) end
  end
  if importId ~= '' then give(redis.call('HGET', prefix .. ':import:' .. importId, key)) end
end
return table.concat(out)
`;

/**
 * Commits a batch: per learner all or nothing, and only if nobody else wrote that learner since it was read.
 * KEYS: prefixes of the partitions.
 * ARGV: the request:
 *   text importId, u32 outbox bound, u16 learners, each: u16 prefix index, text name, u32 expected version (0: new),
 *   u16 fields, each text name and text record; u16 rows, each text; u16 ids, each 10 bytes and text answer;
 *   u16 generations of items that are forgotten, each u16 parity; u16 items, each u16 parity, 8 bytes and text record;
 *   text import mark.
 * Result: a digit per learner: 0 committed, 1 somebody else wrote it, 2 outbox full, 3 Redis came back empty.
 */
export const commitScript = `
${reader}
${idIndex}
local importId, outboxBound = text(), u32()

local function splitBucket(prefix, count)
  local span = 1
  while span * 2 <= count do span = span * 2 end
  local from, to = bucketKey(prefix, count - span), bucketKey(prefix, count)
  local all, moved, gone = redis.call('HGETALL', from), {}, {}
  for i = 1, #all, 2 do
    if bucketOf(all[i], count + 1) == count then
      moved[#moved + 1], moved[#moved + 2] = all[i], all[i + 1]
      gone[#gone + 1] = all[i]
    end
  end
  if #gone > 0 then
    redis.call('HSET', to, unpack(moved))
    redis.call('HDEL', from, unpack(gone))
  end
  redis.call('SET', prefix .. ':i:n', count + 1)
end

local function keepId(prefix, id, answer)
  local count = bucketCount(prefix)
  redis.call('HSET', bucketKey(prefix, bucketOf(id, count)), id, answer)
  if redis.call('RPUSH', prefix .. ':i:q', id) > count * idsPerBucket then splitBucket(prefix, count) end
end

local function refusal(key, prefix, expected)
  local record = redis.call('HGET', key, 'L')
  local version = record and struct.unpack('<I4', record, 5) or 0
  if version ~= expected then return '1' end
  if redis.call('XLEN', prefix .. ':out') >= outboxBound then return '2' end
  if expected == 0 and redis.call('EXISTS', prefix .. ':m') == 0 then return '3' end
  return nil
end

local statuses = {}
for learner = 1, u16() do
  local prefix = KEYS[u16()]
  local name = text()
  local key = learnerKey(prefix, name)
  local refused = refusal(key, prefix, u32())
  local fields = {}
  for _ = 1, u16() do fields[#fields + 1] = text() fields[#fields + 1] = text() end
  if not refused then redis.call('HSET', key, unpack(fields)) end
  for _ = 1, u16() do
    local row = text()
    if not refused then redis.call('XADD', prefix .. ':out', '*', 'r', row) end
  end
  for _ = 1, u16() do
    local id, answer = fixed(10), text()
    if not refused then keepId(prefix, id, answer) end
  end
  for _ = 1, u16() do
    local forgotten = itemsKey(prefix, u16(), name)
    if not refused then redis.call('DEL', forgotten) end
  end
  for _ = 1, u16() do
    local items, item, record = itemsKey(prefix, u16(), name), fixed(8), text()
    if not refused then redis.call('HSET', items, item, record) end
  end
  local mark = text()
  if not refused and mark ~= '' then redis.call('HSET', prefix .. ':import:' .. importId, key, mark) end
  statuses[learner] = refused or '0'
end
return table.concat(statuses)
`;

/**
 * Forgets a partition's oldest event ids.
 * KEYS: the partition's prefix. ARGV: forget ids that arrived at this Unix second or before; how many at most.
 * Result: number forgotten, ids left, Unix second of the oldest left (0 if none).
 */
export const evictIdsScript = `
${idIndex}
local prefix, cutoff, atMost = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local queue, count, forgotten = prefix .. ':i:q', bucketCount(prefix), 0
local oldest = 0
while true do
  local id = redis.call('LINDEX', queue, 0)
  if not id then oldest = 0 break end
  local key = bucketKey(prefix, bucketOf(id, count))
  local answer = redis.call('HGET', key, id)
  oldest = answer and struct.unpack('<I4', answer) or 0
  if oldest > cutoff or forgotten >= atMost then break end
  redis.call('HDEL', key, id)
  redis.call('LPOP', queue)
  forgotten = forgotten + 1
end
return { forgotten, redis.call('LLEN', queue), oldest }
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
