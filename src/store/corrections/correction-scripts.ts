/** The Lua scripts of erasures and corrections: what has to be one step with the outbox. */
import { modelVersion } from '../../domain/base/params.js';
import { markerName, unnotedVersion } from '../redis/keys.js';
import { defineScript } from '../redis/script.js';

/** Versions of which an upgrade may have moved learners aside. */
const asideVersions = Array.from({ length: modelVersion - unnotedVersion + 1 }, (_, i) => unnotedVersion + i);

/**
 * The stream that has the correction in its place: the outbox or, of an erasure, the due ones. A Redis that took over may
 * have given its id to something else.
 */
const placeOf = `
local function standsIn(stream, id, text)
  local entry = redis.call('XRANGE', stream, id, id)[1]
  return entry and entry[2][1] == 'c' and entry[2][2] == text
end
local function placeOf(prefix, id, text)
  for _, stream in ipairs({ prefix .. ':out', prefix .. ':due' }) do
    if standsIn(stream, id, text) then return stream end
  end
end
local function now()
  local time = redis.call('TIME')
  return time[1] .. string.format('%03d', math.floor(time[2] / 1000))
end
`;

/**
 * Erases a learner's states and orders the rest: the correction and the erasure's record.
 * KEYS: the partition's prefix. ARGV: name of the learner, id of the erasure, its record as JSON, the correction, most
 *   erasures that may be open, the learner's hash, most that are remembered of those who were erased.
 * Result: what became of it and an id: \`begun\`; \`open\` (nothing new since the erasure of that id, which is not done);
 *   \`absent\`, \`full\`, \`emptied\` (Redis came back empty).
 */
export const eraseLearner = defineScript(1)<
  [
    prefix: string,
    name: string,
    id: string,
    record: string,
    correction: string,
    mostOpen: number,
    hash: string,
    mostEnded: number,
  ],
  [string, string]
>(`
${placeOf}
local prefix, name, id = KEYS[1], ARGV[1], ARGV[2]
local erasures, key = prefix .. ':erasures', prefix .. ':l:' .. name
if redis.call('EXISTS', prefix .. ':${markerName}') == 0 then return { 'emptied', '' } end
if redis.call('HEXISTS', key, 'L') == 0 and redis.call('HEXISTS', key, 'G') == 0 then
  local open = redis.call('HGET', erasures, '@' .. name)
  return { open and 'open' or 'absent', open or '' }
end
local ended, hash = prefix .. ':erased', ARGV[6]
local earlier = redis.call('HGET', ended, hash)
if redis.call('HLEN', erasures) >= 2 * tonumber(ARGV[5]) then return { 'full', '' } end
if not earlier and redis.call('HLEN', ended) >= tonumber(ARGV[7]) then return { 'full', '' } end
local record = cjson.decode(ARGV[3])
local goal = redis.call('HGET', key, 'G')
local items = redis.call('HLEN', prefix .. ':h0:' .. name) + redis.call('HLEN', prefix .. ':h1:' .. name)
record.removed = { records = redis.call('HLEN', key), items = items }
local correction = cjson.decode(ARGV[4])
correction.goalAt = goal and tonumber(string.match(goal, '"updatedAt":(%d+)')) or 0
record.goalAt = correction.goalAt
record.requestedAt = tonumber(now())
redis.call('DEL', key, prefix .. ':e:' .. name, prefix .. ':h0:' .. name, prefix .. ':h1:' .. name)
for _, version in ipairs({ ${asideVersions} }) do
  local aside = 'st:v' .. version .. string.sub(prefix, 3)
  redis.call('DEL', aside .. ':l:' .. name, aside .. ':h0:' .. name, aside .. ':h1:' .. name)
end
record.correction = redis.call('XADD', prefix .. ':out', '*', 'c', cjson.encode(correction))
redis.call('HSET', erasures, id, cjson.encode(record), '@' .. name, id)
redis.call('HSET', ended, hash, cjson.encode({
  v = 1, tenant = record.tenant, at = record.requestedAt, correction = record.correction, looks = 0,
  goalAt = math.max(record.goalAt, earlier and cjson.decode(earlier).goalAt or 0),
}))
return { 'begun', id }
`);

/**
 * Notes that it was looked for what came late of an erased learner, unless the learner was erased again meanwhile.
 * KEYS: the partition's prefix. ARGV: the learner's hash, what was noted, what to note or '' to forget. Result: none.
 */
export const lookedAtEnded = defineScript(1)<
  [prefix: string, hash: string, text: string, next: string],
  null
>(`
local ended = KEYS[1] .. ':erased'
if redis.call('HGET', ended, ARGV[1]) ~= ARGV[2] then return end
if ARGV[3] == '' then redis.call('HDEL', ended, ARGV[1]) else redis.call('HSET', ended, ARGV[1], ARGV[3]) end
`);

/**
 * Forgets an erasure that is done, and whose it was; a later one of the same learner stays.
 * KEYS: the partition's prefix. ARGV: id of the erasure, name of the learner. Result: fields removed.
 */
export const closeErasure = defineScript(1)<[prefix: string, id: string, name: string], number>(`
local erasures, field = KEYS[1] .. ':erasures', '@' .. ARGV[2]
if redis.call('HGET', erasures, field) == ARGV[1] then redis.call('HDEL', erasures, field) end
return redis.call('HDEL', erasures, ARGV[1])
`);

/**
 * KEYS: the partition's prefix. ARGV: most erasures.
 * Result: id of the outbox' oldest entry or ''; of the oldest due erasures id, text, what is kept of it or '', and
 *   milliseconds since, in turn.
 */
export const readDueEntries = defineScript(1)<
  [prefix: string, most: number],
  [head: string, ...(string | number)[]]
>(`
${placeOf}
local head = redis.call('XRANGE', KEYS[1] .. ':out', '-', '+', 'COUNT', 1)[1]
local found, time = { head and head[1] or '' }, now()
for _, entry in ipairs(redis.call('XRANGE', KEYS[1] .. ':due', '-', '+', 'COUNT', ARGV[1])) do
  local plan = redis.call('HGET', KEYS[1] .. ':plans', entry[1])
  local since, kept = string.match(plan or '', '^(%d+) (.*)$')
  for _, value in ipairs({ entry[1], entry[2][2], kept or '', since and time - since or 0 }) do
    found[#found + 1] = value
  end
end
return found
`);

/**
 * Keeps what a correction is about to take away, where nothing is kept yet.
 * KEYS: the partition's prefix. ARGV: outbox id, the correction, what to keep or ''.
 * Result: what is kept or '', milliseconds since; or nothing where the correction is gone.
 */
export const planCorrection = defineScript(1)<
  [prefix: string, id: string, text: string, plan: string],
  [string, number] | []
>(`
${placeOf}
local prefix, id = KEYS[1], ARGV[1]
if not placeOf(prefix, id, ARGV[2]) then return {} end
local plan, time = redis.call('HGET', prefix .. ':plans', id), now()
if not plan and ARGV[3] ~= '' then
  plan = time .. ' ' .. ARGV[3]
  redis.call('HSET', prefix .. ':plans', id, plan)
end
if not plan then return { '', 0 } end
local since, kept = string.match(plan, '^(%d+) (.*)$')
return { kept, time - since }
`);

/**
 * Ends a correction that was carried out.
 * KEYS: the partition's prefix. ARGV: outbox id, the correction, erasure's id or '', JSON of what its places had before;
 *   then fields of the removed answers and what they grow by, in turn.
 * Result: 1, or 0 where it had been ended before.
 */
export const settleCorrection = defineScript(1)<
  [
    prefix: string,
    id: string,
    text: string,
    erasureId: string,
    before: string,
    ...removed: (string | number)[],
  ],
  number
>(`
${placeOf}
local prefix, id, erasureId = KEYS[1], ARGV[1], ARGV[3]
local place = placeOf(prefix, id, ARGV[2])
if not place then return 0 end
redis.call('XDEL', place, id)
redis.call('HDEL', prefix .. ':plans', id)
for i = 5, #ARGV, 2 do redis.call('HINCRBY', prefix .. ':removed', ARGV[i], ARGV[i + 1]) end
local stored = erasureId ~= '' and redis.call('HGET', prefix .. ':erasures', erasureId)
if stored then
  local record = cjson.decode(stored)
  record.before = cjson.decode(ARGV[4])
  redis.call('HSET', prefix .. ':erasures', erasureId, cjson.encode(record))
end
return 1
`);

/**
 * Takes refused rows of a learner away for good.
 * KEYS: the partition's prefix. ARGV: ids of entries of its parked rows, each with its field of the removed answers, or ''.
 * Result: number taken away.
 */
export const removeParkedEntries = defineScript(1)<[prefix: string, ...entries: string[]], number>(`
local removed = 0
for i = 1, #ARGV, 2 do
  if redis.call('XDEL', KEYS[1] .. ':out:parked', ARGV[i]) == 1 then
    if ARGV[i + 1] ~= '' then redis.call('HINCRBY', KEYS[1] .. ':removed', ARGV[i + 1], 1) end
    removed = removed + 1
  end
end
return removed
`);
