import { mapRedisErrors, type RedisClient } from '../connection/client.js';

let scriptCount = 0;

/**
 * ioredis sends the script's hash, and the text only if Redis lacks it.
 * @param keyCount leading arguments that are keys; null: the first argument is that number
 */
export const defineScript =
  (keyCount: number | null, reply: 'text' | 'bytes' = 'text') =>
  <Arguments extends readonly (string | number | Buffer)[], Result>(lua: string) => {
    scriptCount += 1;
    const name = `script${scriptCount}`;
    const command = reply === 'text' ? name : `${name}Buffer`;
    return (client: RedisClient, ...args: Arguments): Promise<Result> => {
      if (!(name in client))
        client.defineCommand(name, { lua, ...(keyCount !== null && { numberOfKeys: keyCount }) });
      return mapRedisErrors<Result>(Reflect.get(client, command).apply(client, args));
    };
  };

/** Unix milliseconds on Redis' clock, as text. */
export const nowLua = `
local function now()
  local time = redis.call('TIME')
  return time[1] .. string.format('%03d', math.floor(time[2] / 1000))
end
`;

/** '' means no value. @returns 1 if replaced */
export const compareAndSetField = defineScript(1)<
  [key: string, field: string, expected: string, value: string],
  0 | 1
>(`
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
return 1
`);
