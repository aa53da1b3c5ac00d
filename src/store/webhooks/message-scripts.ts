/**
 * Keys of an endpoint's messages, all in one slot: `:s`, states by message id; `:b`, bodies; `:log`, ids by
 * arrival; `:due`, pending ids by next attempt; `:last`, time of the last delivery in milliseconds. Scores
 * are Unix microseconds, so that arrivals are unique.
 */
import { defineScript } from '../redis/commands/script.js';

/** Messages are listed and retried for this time. */
export const messageRetentionMs = 7 * 86_400_000;
export const messagesPerCommand = 200;

/** KEYS: prefix, next deliveries, endpoints. ARGV: `TENANT:ID`, id, maximum of listed messages. */
type EndpointArguments = readonly [
  ...keys: [string, string, string],
  name: string,
  id: string,
  listed: number,
];

const endpointLua = `
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
-- Checks the oldest messages, at most the given number. Deletes expired messages and, above the limit, messages that
-- are not pending.
local function prune(most)
  local old, over = micros - ${1000 * messageRetentionMs}, redis.call('ZCARD', log) - listed
  local oldest = redis.call('ZRANGE', log, 0, most - 1, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    local isOld = tonumber(oldest[i + 1]) < old
    if not isOld and i > 2 * over then break end
    if isOld or not redis.call('ZSCORE', due, oldest[i]) then forget(oldest[i]) end
  end
end
-- All keys expire together: a pending id without its state would be due forever.
local function keep()
  for _, key in ipairs({ states, bodies, log, due }) do redis.call('PEXPIRE', key, ${messageRetentionMs}) end
end
`;

/**
 * Ignores existing messages and deleted endpoints. `messages`: id, state, body of each. Result: number of
 * rejected messages.
 */
export const addMessagesScript = defineScript(3)<
  [...own: EndpointArguments, waiting: number, ...messages: readonly string[]],
  number
>(`
${endpointLua}
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
 * Ignores deleted messages. `tries`: id, state, milliseconds until the next attempt or '' of each. Result:
 * number of existing messages.
 */
export const storeOutcomesScript = defineScript(3)<
  [...own: EndpointArguments, ...tries: readonly (string | number)[]],
  number
>(`
${endpointLua}
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
      -- The oldest messages may all be pending: then prune deletes nothing.
      if redis.call('ZCARD', log) > listed then forget(id) end
    end
  end
end
keep()
if delivered then redis.call('SET', last, millis, 'PX', ${messageRetentionMs}) end
return there
`);

/** The next run is due with the first pending message, but not before the pause (milliseconds) ends. */
export const scheduleRunScript = defineScript(3)<[...own: EndpointArguments, pause: number], null>(`
${endpointLua}
prune(${messagesPerCommand})
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
if first then
  redis.call('ZADD', next, math.max(math.floor(first / 1000), millis + tonumber(ARGV[4])), name)
else
  redis.call('ZREM', next, name)
end
`);

export const removeMessagesScript = defineScript(3)<
  [...own: EndpointArguments, ...ids: readonly string[]],
  null
>(`
${endpointLua}
for i = 4, #ARGV do forget(ARGV[i]) end
`);
