import { defineScript } from './script.js';

/** KEYS: a hash. ARGV: field, value that it is expected to have ('': none), new value. Result: 1 where it was set. */
export const replaceField = defineScript(1)<
  [key: string, field: string, expected: string, value: string],
  0 | 1
>(`
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`);
