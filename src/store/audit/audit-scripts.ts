/** Scripts of the audit: each looks at one partition. */
import { rowColumns } from '../../contracts/attempt-row.js';
import { defineScript } from '../redis/script.js';

/** A Lua pattern that captures these columns of an encoded row, in the row's order. */
function columnsPattern(wanted: readonly (typeof rowColumns)[number][]): string {
  const last = Math.max(...wanted.map((name) => rowColumns.indexOf(name)));
  const columns = rowColumns
    .slice(0, last + 1)
    .map((name) => (wanted.includes(name) ? '([^\\t]*)' : '[^\\t]*'));
  return `^${columns.join('\\t')}`;
}

/**
 * The counts of a partition and where its streams end, all of one moment.
 * KEYS: hash of accepted, hash of removed, outbox, parked rows, due erasures.
 * Result: fields and values of either hash; last id of the outbox ('' where there is none); last id and length of the
 * parked rows, as one text; number of due erasures; Redis' clock: seconds, microseconds.
 */
export const lookAtPartition = defineScript(5)<
  [accepted: string, removed: string, outbox: string, parked: string, due: string],
  [string[], string[], string, string, number, string, string]
>(`
local function lastId(key)
  if redis.call('EXISTS', key) == 0 then return '' end
  local info = redis.call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do if info[i] == 'last-generated-id' then return info[i + 1] end end
end
local time = redis.call('TIME')
return {
  redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), lastId(KEYS[3]),
  lastId(KEYS[4]) .. ' ' .. redis.call('XLEN', KEYS[4]), redis.call('XLEN', KEYS[5]), time[1], time[2],
}
`);

/** What `countStreamPage` gives. */
type CountedPage = [
  entries: number,
  oldest: string,
  corrections: number,
  unreadable: number,
  arrived: (string | number)[],
  occurred: (string | number)[],
  right: (string | number)[],
];

/**
 * Counts a page of a stream, from newer to older entries.
 * KEYS: stream. ARGV: id to begin with, or \`(\` and the id to begin below; most entries.
 * Result: entries; id of the oldest ('' for none); corrections among them; rows that cannot be read; then tenant and day in turn
 * with numbers: of rows by day of arrival; of them and of right ones by day of occurred_at.
 */
export const countStreamPage = defineScript(1)<[key: string, from: string, atMost: number], CountedPage>(`
local pattern = '${columnsPattern(['tenant', 'is_correct', 'occurred_at', 'received_at'])}'
local arrived, occurred, right = {}, {}, {}
local corrections, unreadable = 0, 0

local function add(sums, tenant, seconds, n)
  local name = tenant .. ':' .. string.format('%d', math.floor(tonumber(seconds) / 86400))
  sums[name] = (sums[name] or 0) + n
end

local function count(row)
  local tenant, correct, occurredAt, receivedAt = string.match(row, pattern)
  if not (tenant and tonumber(occurredAt) and tonumber(receivedAt)) then unreadable = unreadable + 1 return end
  add(arrived, tenant, receivedAt, 1)
  add(occurred, tenant, occurredAt, 1)
  if correct == '1' then add(right, tenant, occurredAt, 1) end
end

local function look(fields)
  for i = 1, #fields, 2 do
    if fields[i] == 'c' then corrections = corrections + 1 return end
    if fields[i] == 'r' and fields[i + 1] ~= '' then
      for row in string.gmatch(fields[i + 1], '[^\\n]+') do count(row) end
      return
    end
  end
  unreadable = unreadable + 1
end

local function flat(sums)
  local list = {}
  for name, n in pairs(sums) do list[#list + 1] = name list[#list + 1] = n end
  return list
end

local entries = redis.call('XREVRANGE', KEYS[1], ARGV[1], '-', 'COUNT', ARGV[2])
for i = 1, #entries do look(entries[i][2]) end
local oldest = #entries > 0 and entries[#entries][1] or ''
return { #entries, oldest, corrections, unreadable, flat(arrived), flat(occurred), flat(right) }
`);

/** Field that tells up to which day the counts of a partition were forgotten. No tenant is empty. */
export const prunedField = ':pruned';

/**
 * Forgets the counts of old days, and notes up to which day where there were any.
 * KEYS: hash of accepted, hash of removed. ARGV: last day that is forgotten.
 */
export const pruneAccepted = defineScript(2)<[accepted: string, removed: string, throughDay: number], null>(`
local through, forgotten = tonumber(ARGV[1]), 0
for _, key in ipairs(KEYS) do
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local day = tonumber(string.match(name, '^.+:(%d+)$'))
    if day and day <= through then forgotten = forgotten + redis.call('HDEL', key, name) end
  end
end
local before = tonumber(redis.call('HGET', KEYS[1], '${prunedField}') or -1)
if forgotten > 0 and before < through then redis.call('HSET', KEYS[1], '${prunedField}', through) end
`);
