import { type RedisClient, whileRedisServes } from './client.js';
import { defineScript } from './script.js';

/** A live holder takes the lock again every two seconds. */
const lockMs = 10_000;

/** KEYS: lock. ARGV: holder, milliseconds. Result: 0 when it is the holder's now, else the milliseconds left, at least 1. */
const lock = defineScript(1)<[key: string, holder: string, ms: number], number>(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return math.max(redis.call('PTTL', KEYS[1]), 1) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
`);

const unlock = defineScript(1)<[key: string, holder: string], null>(
  `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`,
);

/** @returns 0, or the milliseconds for which another holder has it. @throws ApiError UNAVAILABLE */
export const takeLock = (client: RedisClient, key: string, holder: string): Promise<number> =>
  whileRedisServes(lock(client, key, holder, lockMs));

export async function releaseLock(client: RedisClient, key: string, holder: string): Promise<void> {
  await whileRedisServes(unlock(client, key, holder));
}

/** Whether it is the caller's turn to do what one process does every so many seconds. @throws ApiError UNAVAILABLE */
export const takeTurn = async (client: RedisClient, key: string, seconds: number): Promise<boolean> =>
  (await whileRedisServes(client.set(key, '1', 'EX', seconds, 'NX'))) === 'OK';
