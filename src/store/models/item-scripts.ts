/** The Lua scripts of the item counters; their arguments are packed as those of scripts.ts. */
import { defineScript } from '../redis/script.js';

/**
 * A record: u32 answers, u32 right ones, double expected right ones in millionths (whole numbers, so that additions
 * are exact in any order), then float32 figures of a fit, which only a publication writes.
 */
const reader = `
local data, pos = ARGV[1], 1
local function counters(record) return struct.unpack('<I4I4d', record) end
`;

/**
 * Adds to the counters of items.
 * KEYS: the version's hash of items. ARGV: deltas, each 8 bytes of item hash and counters as in a record; most items
 * that the hash may have; 1 where the hash may be made.
 * Result: -1 where the version's items are gone, else the number of new items for which there was no room.
 */
export const addItems = defineScript(1)<[key: string, deltas: Buffer, atMost: number, make: 0 | 1], number>(`
${reader}
local key, refused = KEYS[1], 0
if ARGV[3] ~= '1' and redis.call('EXISTS', key) == 0 then return -1 end
local room = tonumber(ARGV[2]) - redis.call('HLEN', key)
while pos < #data do
  local id, answers, right, expected
  id, answers, right, expected, pos = struct.unpack('<c8I4I4d', data, pos)
  local record = redis.call('HGET', key, id)
  if record then
    local a, r, e, rest = counters(record)
    record = struct.pack('<I4I4d', a + answers, r + right, e + expected) .. string.sub(record, rest)
  elseif room > 0 then
    room = room - 1
    record = struct.pack('<I4I4d', answers, right, expected)
  end
  if record then redis.call('HSET', key, id, record) else refused = refused + 1 end
end
return refused
`);

/**
 * Writes items of a version that is not in force yet.
 * KEYS: the version's hash of items. ARGV: entries, each 8 bytes of item hash and a record; bytes of a record.
 */
export const writeItems = defineScript(1)<[key: string, entries: Buffer, recordBytes: number], number>(`
local data, bytes = ARGV[1], tonumber(ARGV[2])
for pos = 1, #data, bytes + 8 do
  redis.call('HSET', KEYS[1], string.sub(data, pos, pos + 7), string.sub(data, pos + 8, pos + 7 + bytes))
end
return 1
`);
