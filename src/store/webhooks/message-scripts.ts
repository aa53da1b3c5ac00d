/**
 * Scripts of the messages to an endpoint. Behind its prefix it has `:s`, states by message id; `:b`, bodies; `:log`, ids by the
 * time at which they came; `:due`, ids of those that wait, by the time of the next try; `:last`, the time of the last delivery.
 * All keys are of one slot. Scores are Unix microseconds, so that no two messages have the same; `:last` is in milliseconds.
 */
import { defineScript } from '../redis/script.js';

/** Listed, and waiting, for so long. */
export const keptMs = 7 * 86_400_000;
/** Messages of a command: a fraction of a millisecond of Redis. */
export const chunk = 200;

/** What each script is given first. KEYS: prefix, next tries, endpoints. ARGV: name in the next tries, id, most that are listed. */
type Own = readonly [...keys: [string, string, string], name: string, id: string, listed: number];

const ownLua = `
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local millis = math.floor(micros / 1000)
local prefix, next, endpoints, name, endpoint, listed = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], tonumber(ARGV[3])
local states, bodies, log, due, last = prefix .. ':s', prefix .. ':b', prefix .. ':log', prefix .. ':due', prefix .. ':last'
local function forget(id)
  redis.call('HDEL', states, id)
  redis.call('HDEL', bodies, id)
  redis.call('ZREM', log, id)
  redis.call('ZREM', due, id)
end
-- Old ones go, and of more than are listed the oldest that do not wait any more. Looks at the oldest alone.
local function prune(most)
  local old, over = micros - ${1000 * keptMs}, redis.call('ZCARD', log) - listed
  local oldest = redis.call('ZRANGE', log, 0, most - 1, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    local isOld = tonumber(oldest[i + 1]) < old
    if not isOld and i > 2 * over then break end
    if isOld or not redis.call('ZSCORE', due, oldest[i]) then forget(oldest[i]) end
  end
end
-- All at once: an id that waits without its state would be due for ever.
local function keep()
  for _, key in ipairs({ states, bodies, log, due }) do redis.call('PEXPIRE', key, ${keptMs}) end
end
`;

/**
 * Adds messages that are not there, in their order; none to an endpoint that is no more.
 * ARGV, on: most that wait, then of each message id, state and body. Result: for how many there was no room.
 */
export const addMessages = defineScript(3)<
  [...own: Own, waiting: number, ...messages: readonly string[]],
  number
>(`
${ownLua}
if redis.call('HEXISTS', endpoints, endpoint) == 0 then return 0 end
local newest = tonumber(redis.call('ZREVRANGE', log, 0, 0, 'WITHSCORES')[2] or 0)
local room = tonumber(ARGV[4]) - redis.call('ZCARD', due)
local refused, added = 0, false
for i = 5, #ARGV, 3 do
  local id = ARGV[i]
  local isNew = redis.call('HEXISTS', states, id) == 0
  if isNew and room <= 0 then
    refused = refused + 1
  elseif isNew then
    room, added = room - 1, true
    newest = math.max(micros, newest + 1)
    local time = string.format('%.0f', newest)
    redis.call('HSET', states, id, ARGV[i + 1])
    redis.call('HSET', bodies, id, ARGV[i + 2])
    redis.call('ZADD', log, time, id)
    redis.call('ZADD', due, time, id)
  end
end
if added then redis.call('ZADD', next, 'LT', millis, name) end
prune(#ARGV)
keep()
return refused
`);

/**
 * Notes what became of tries; nothing for a message that was forgotten meanwhile.
 * ARGV, on: of each its id, state, and milliseconds until the next try or '' for none. Result: how many of them are there.
 */
export const settleMessages = defineScript(3)<[...own: Own, ...tries: readonly (string | number)[]], number>(`
${ownLua}
local there, delivered = 0, false
for i = 4, #ARGV, 3 do
  local id, state, after = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  if redis.call('HEXISTS', states, id) == 1 then
    there = there + 1
    redis.call('HSET', states, id, state)
    if after then
      redis.call('ZADD', due, string.format('%.0f', 1000 * (millis + after)), id)
      redis.call('ZADD', next, 'LT', millis + after, name)
    else
      redis.call('ZREM', due, id)
      delivered = delivered or cjson.decode(state).status == 'delivered'
      -- The oldest may all wait, and leave what came after them no room.
      if redis.call('ZCARD', log) > listed then forget(id) end
    end
  end
end
keep()
if delivered then redis.call('SET', last, millis, 'PX', ${keptMs}) end
return there
`);

/**
 * Ends a run of an endpoint: its next is that of its first message, but not before a pause is over.
 * ARGV, on: milliseconds of the pause.
 */
export const restEndpoint = defineScript(3)<[...own: Own, pause: number], null>(`
${ownLua}
prune(${chunk})
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
if first then
  redis.call('ZADD', next, math.max(math.floor(first / 1000), millis + tonumber(ARGV[4])), name)
else
  redis.call('ZREM', next, name)
end
`);

/** ARGV, on: ids. */
export const forgetMessages = defineScript(3)<[...own: Own, ...ids: readonly string[]], null>(`
${ownLua}
for i = 4, #ARGV do forget(ARGV[i]) end
`);
