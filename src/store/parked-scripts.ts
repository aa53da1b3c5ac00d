import type { Result } from 'ioredis';

/** Each moves entries between a stream and the stream of its parked ones, so that nothing is in both or in neither. */

/**
 * Puts entries aside, as they are.
 * KEYS: the stream, its parked entries. ARGV: most entries that may be parked, reason, then ids. Ids that are not
 * there (any more) are passed over.
 * Result: number of entries that had to stay for want of room.
 */
export const parkScript = `
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
`;

/**
 * Puts parked entries back, behind all that waits.
 * KEYS: the parked entries, the stream. ARGV: most entries that the stream may hold, id up to which the stream is known
 * to hold no correction, then ids among the parked ones; those that are not there (any more) are passed over.
 * Result: how many were put back, how many had to stay: for want of room, or because a correction waits, there or among
 * the due ones. What is put back comes behind it, and it would not reach a row that it is meant for.
 */
export const redriveScript = `
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
    if #fields > 0 then redis.call('XADD', KEYS[2], '*', unpack(fields)) end
    redis.call('XDEL', KEYS[1], id)
    room, moved = room - 1, moved + 1
  end
end
return { moved, stay }
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    parkEntries(
      stream: string,
      parked: string,
      bound: number,
      reason: string,
      ...ids: string[]
    ): Result<number, Context>;
    redriveEntries(
      parked: string,
      stream: string,
      bound: number,
      searchedTo: string,
      ...ids: string[]
    ): Result<[number, number], Context>;
  }
}
