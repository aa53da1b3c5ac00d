import { defineScript } from '../redis/script.js';

/** Each moves entries between a stream and the stream of its parked ones, so that nothing is in both or in neither. */

/**
 * Puts entries aside, as they are.
 * KEYS: the stream, its parked entries. ARGV: most entries that may be parked, reason, then ids. Ids that are not
 * there (any more) are passed over.
 * Result: number of entries that had to stay for want of room.
 */
export const moveToParked = defineScript(2)<
  [stream: string, parked: string, bound: number, reason: string, ...ids: string[]],
  number
>(`
local room, stay = tonumber(ARGV[1]) - redis.call('XLEN', KEYS[2]), 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if entry and room <= 0 then
    stay = stay + 1
  elseif entry then
    local fields = { 'id', id, 'reason', ARGV[2] }
    for _, field in ipairs(entry[2]) do fields[#fields + 1] = field end
    redis.call('XADD', KEYS[2], '*', unpack(fields))
    redis.call('XDEL', KEYS[1], id)
    room = room - 1
  end
end
return stay
`);

/**
 * Removes an entry of which all other rows are stored, and puts those that are refused aside, an entry each.
 * KEYS: the stream, its parked entries. ARGV: most entries that may be parked; id of the entry, SHA-1 of its rows and their
 * number; then of each row that is refused its id, the reason and the row. Does nothing where the entry is not there (any
 * more), or is another one: a Redis that took over may have given its id again.
 * Result: 0 where there is no room for them, else 1.
 */
export const moveRowsToParked = defineScript(2)<
  [
    stream: string,
    parked: string,
    bound: number,
    entry: string,
    sha1: string,
    rows: number,
    ...refused: (string | Buffer)[],
  ],
  number
>(`
local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
if not entry or entry[2][1] ~= 'r' or redis.sha1hex(entry[2][2]) ~= ARGV[3] then return 1 end
-- The rows of an entry go together, a little beyond the bound at most.
if #ARGV > 4 and redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[1]) then return 0 end
for i = 5, #ARGV, 3 do
  redis.call('XADD', KEYS[2], '*', 'id', ARGV[i], 'reason', ARGV[i + 1], 'r', ARGV[i + 2])
end
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('DECRBY', KEYS[1] .. ':rows', ARGV[4])
return 1
`);

/**
 * Puts parked entries back, behind all that waits.
 * KEYS: the parked entries, the stream. ARGV: most entries that the stream may hold, id up to which the stream is known
 * to hold no correction, then ids among the parked ones; those that are not there (any more) are passed over.
 * Result: how many were put back, how many had to stay: for want of room, or because a correction waits, there or among
 * the due ones. What is put back comes behind it, and it would not reach a row that it is meant for.
 */
export const redriveEntries = defineScript(2)<
  [parked: string, stream: string, bound: number, searchedTo: string, ...ids: string[]],
  [moved: number, stayed: number]
>(`
local room, moved, stay = tonumber(ARGV[1]) - redis.call('XLEN', KEYS[2]), 0, 0
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], ARGV[2], '+')) do
  if entry[2][1] == 'c' then room = 0 end
end
local prefix = string.match(KEYS[2], '^(.*):out$')
if prefix and redis.call('XLEN', prefix .. ':due') > 0 then room = 0 end
for i = 3, #ARGV do
  local id = ARGV[i]
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if entry and room <= 0 then
    stay = stay + 1
  elseif entry then
    local fields, parked = {}, entry[2]
    for j = 1, #parked, 2 do
      if parked[j] ~= 'id' and parked[j] ~= 'reason' then
        fields[#fields + 1], fields[#fields + 2] = parked[j], parked[j + 1]
      end
    end
    -- An entry without a field of its own cannot be written again: it was nothing.
    if #fields > 0 then
      redis.call('XADD', KEYS[2], '*', unpack(fields))
      if prefix then redis.call('INCR', KEYS[2] .. ':rows') end
    end
    redis.call('XDEL', KEYS[1], id)
    room, moved = room - 1, moved + 1
  end
end
return { moved, stay }
`);
