/** The Lua of event ids: how they are kept, found and forgotten (scripts.ts tells what scripts are). */

/** How many ids a bucket holds in the mean. */
export const idsPerBucket = 40;

/**
 * Event ids of a partition. They live in small hashes (`PREFIX:i:B`, field = 10 bytes of id hash, value = the
 * first answer) that Redis keeps as listpacks, for a plain key per id would cost three times the memory. The
 * number of those hashes grows one at a time with the number of ids (linear hashing), so each stays near 40
 * fields. `PREFIX:i:q` lists the ids in order of arrival, for forgetting the oldest.
 */
export const idIndex = `
local idsPerBucket = ${idsPerBucket}
local indexes = {}
local function indexOf(prefix)
  local index = indexes[prefix]
  if index then return index end
  local count = tonumber(redis.call('GET', prefix .. ':i:n') or 1)
  local span = 1
  while span * 2 <= count do span = span * 2 end
  index = { count = count, span = span, bucket = prefix .. ':i:', queue = prefix .. ':i:q', taken = {} }
  indexes[prefix] = index
  return index
end
local function bucketOf(index, hash)
  local bucket = hash % (index.span * 2)
  if bucket >= index.count then bucket = hash % index.span end
  return index.bucket .. bucket
end
local function hashOf(id) return (struct.unpack('<I4', id)) end
`;

/** Makes one more bucket, which takes its ids from the one that had them until now. */
export const splitting = `
local function splitBucket(index)
  local from, to = index.bucket .. (index.count - index.span), index.bucket .. index.count
  local all, moved, gone = redis.call('HGETALL', from), {}, {}
  index.count = index.count + 1
  for i = 1, #all, 2 do
    if bucketOf(index, hashOf(all[i])) == to then
      moved[#moved + 1], moved[#moved + 2] = all[i], all[i + 1]
      gone[#gone + 1] = all[i]
    end
  end
  -- In parts: ids can be made that meet in one bucket, more of them than unpack takes.
  for i = 1, #gone, 1000 do
    local last = math.min(i + 999, #gone)
    redis.call('HSET', to, unpack(moved, 2 * i - 1, 2 * last))
    redis.call('HDEL', from, unpack(gone, i, last))
  end
  if index.span * 2 <= index.count then index.span = index.span * 2 end
end
`;

/**
 * Gives a partition more buckets for its event ids.
 * KEYS: the partition's prefix. ARGV: how many there are to be.
 * Result: how many there are.
 */
export const growIdsScript = `
${idIndex}
${splitting}
local index = indexOf(KEYS[1])
local before = index.count
while index.count < tonumber(ARGV[1]) do splitBucket(index) end
-- Whoever watches the number need not try again for nothing.
if index.count > before then redis.call('SET', index.bucket .. 'n', index.count) end
return index.count
`;

/** Processes whose clocks differ put ids into the line a little out of turn: that much is none. */
const clockDifferenceSeconds = 60;

/**
 * Forgets a partition's oldest event ids.
 * KEYS: the partition's prefix. ARGV: forget ids that arrived at this Unix second or before; how many at most.
 * Result: number forgotten, ids left, Unix second of the oldest left (0 if none).
 */
export const evictIdsScript = `
${idIndex}
-- An id that was forgotten with its learner and taken again stands in the line twice, first where it stood before.
-- There it is younger than those behind it, and goes to the end.
local function isOutOfTurn(index, second)
  local length, step = redis.call('LLEN', index.queue), 1
  while step < length and step <= 16384 do
    local id = redis.call('LINDEX', index.queue, step)
    local answer = redis.call('HGET', bucketOf(index, hashOf(id)), id)
    if answer and struct.unpack('<I4', answer) + ${clockDifferenceSeconds} < second then return true end
    step = step * 2
  end
  return false
end
local prefix, cutoff, atMost = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local index, forgotten, oldest = indexOf(prefix), 0, 0
local queue = index.queue
while true do
  local id = redis.call('LINDEX', queue, 0)
  if not id then oldest = 0 break end
  local key = bucketOf(index, hashOf(id))
  local answer = redis.call('HGET', key, id)
  oldest = answer and struct.unpack('<I4', answer) or 0
  if forgotten >= atMost then break end
  if oldest > cutoff then
    if not isOutOfTurn(index, oldest) then break end
    redis.call('RPUSH', queue, id)
  else
    redis.call('HDEL', key, id)
  end
  redis.call('LPOP', queue)
  forgotten = forgotten + 1
end
return { forgotten, redis.call('LLEN', queue), oldest }
`;

/**
 * Forgets event ids of a learner. They keep their places in the line of all (evictIdsScript).
 * KEYS: the partition's prefix. ARGV: ids, each with the Unix second in which its answer came: an id that was taken again
 *   since has another one.
 * Result: number forgotten.
 */
export const forgetIdsScript = `
${idIndex}
local index, forgotten = indexOf(KEYS[1]), 0
for i = 1, #ARGV, 2 do
  local bucket = bucketOf(index, hashOf(ARGV[i]))
  local answer = redis.call('HGET', bucket, ARGV[i])
  if answer and struct.unpack('<I4', answer) == tonumber(ARGV[i + 1]) then
    forgotten = forgotten + redis.call('HDEL', bucket, ARGV[i])
  end
end
return forgotten
`;
