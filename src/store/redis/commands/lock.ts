import { mapRedisErrors, type RedisClient } from '../connection/client.js';
import { defineScript } from './script.js';

/** Holders renew the lock every two seconds. */
const lockMs = 10_000;

/** @returns 0 if acquired, else milliseconds (at least 1) until another holder's lock expires */
export const acquireLock = defineScript(1)<[key: string, holder: string], number>(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return math.max(redis.call('PTTL', KEYS[1]), 1) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ${lockMs})
return 0
`);

export const releaseLock = defineScript(1)<[key: string, holder: string], null>(
  `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`,
);

/** True for one caller every `seconds`. */
export const acquirePeriodicRun = async (
  client: RedisClient,
  key: string,
  seconds: number,
): Promise<boolean> => (await mapRedisErrors(client.set(key, '1', 'EX', seconds, 'NX'))) === 'OK';
