import { defineScript } from './script.js';

/** Compare-and-set of a hash's field. '' stands for no value. @returns 1 if it was replaced */
export const replaceField = defineScript(1)<
  [key: string, field: string, expected: string, value: string],
  0 | 1
>(`
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
return 1
`);
