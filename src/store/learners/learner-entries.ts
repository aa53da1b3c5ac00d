/** A learner's rows in streams that many learners share. */
import { type RedisClient, whileRedisServes } from '../redis/client.js';

/**
 * Looks through a page of a stream, newest first, for the rows of one learner; an entry has several, a line each.
 * KEYS: the stream. ARGV: last id, most entries to look at, what the rows begin with, number of fields before that.
 * Result: id of the oldest entry that was looked at ('' at the beginning of the stream), then the rows that were found.
 */
const findRowsScript = `
local entries = redis.call('XREVRANGE', KEYS[1], ARGV[1], '-', 'COUNT', ARGV[2])
local prefix, leading = ARGV[3], tonumber(ARGV[4])
local found = { #entries < tonumber(ARGV[2]) and '' or entries[#entries][1] }
local function isMeant(row)
  local at = 1
  for _ = 1, leading do at = (string.find(row, '\\t', at, true) or #row) + 1 end
  return string.sub(row, at, at + #prefix - 1) == prefix
end
local function add(rows)
  -- Most entries have none of it.
  if not string.find(rows, prefix, 1, true) then return end
  local own = {}
  for row in string.gmatch(rows, '[^\\n]+') do
    if isMeant(row) then own[#own + 1] = row end
  end
  for i = #own, 1, -1 do found[#found + 1] = own[i] end
end
for _, entry in ipairs(entries) do
  local fields = entry[2]
  for i = 1, #fields, 2 do
    if fields[i] == 'r' then add(fields[i + 1]) end
  end
end
return found
`;

/** Entries looked at in a step: about a millisecond of Redis, which answers learners meanwhile. */
const pageEntries = 500;

/**
 * The rows of one learner in a stream, newest first, a page at a time, without what is appended meanwhile.
 *
 * @param prefix what the learner's rows begin with, after the leading fields
 * @param leading fields that stand before it
 * @throws ApiError UNAVAILABLE
 */
export async function* rowsInStream(
  client: RedisClient,
  key: string,
  prefix: string,
  leading: number,
): AsyncGenerator<readonly string[]> {
  for (let from: string | null = '+'; from !== null; ) {
    const reply = client.eval(findRowsScript, 1, key, from, pageEntries, prefix, leading);
    const [oldest, ...rows] = (await whileRedisServes(reply)) as [string, ...string[]];
    if (rows.length > 0) yield rows;
    from = oldest === '' ? null : `(${oldest}`;
  }
}
