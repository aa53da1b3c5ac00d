import { minRegisteredLearners } from '../../domain/base/score-constants.js';
import { splitIntoParts } from '../../lists.js';
import { defineScript } from '../redis/commands/script.js';
import { executeAll, mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { catalogueKey, rareSkillsKey, registeredSkillsKey } from '../redis/keys.js';
import { hashText } from '../redis/wire/binary.js';

/**
 * A skill is rare until enough learners answered it. Pairs: skill and 8 bytes of learner hash. Result: number
 * of the tenant's skills; given skills that are not rare.
 */
const addLearnersScript = defineScript(2)<
  [skills: string, rare: string, ...pairs: (string | Buffer)[]],
  [size: number, notRare: string[]]
>(`
local skills, rare, common = KEYS[1], KEYS[2], {}
local function has(list, learner)
  for at = 1, #list, 8 do
    if string.sub(list, at, at + 7) == learner then return true end
  end
  return false
end
for i = 1, #ARGV, 2 do
  local skill, learner = ARGV[i], ARGV[i + 1]
  local list = redis.call('HGET', rare, skill)
  if not list and redis.call('ZADD', skills, 0, skill) == 1 then list = '' end
  if not list then
    common[#common + 1] = skill
  elseif not has(list, learner) then
    list = list .. learner
    if #list < ${8 * minRegisteredLearners} then
      redis.call('HSET', rare, skill, list)
    else
      redis.call('HDEL', rare, skill)
      common[#common + 1] = skill
    end
  end
end
return { redis.call('ZCARD', skills), common }
`);

/** For one page of rare skills, which stay rare. `skills`: approximate page size. Result: next cursor. */
const removeLearnersScript = defineScript(1)<
  [rare: string, cursor: string, skills: number, ...learners: Buffer[]],
  string
>(`
local gone = {}
for i = 3, #ARGV do gone[ARGV[i]] = '' end
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
for i = 1, #page[2], 2 do
  local list = page[2][i + 1]
  local left = string.gsub(list, '........', gone)
  if #left < #list then redis.call('HSET', KEYS[1], page[2][i], left) end
end
return page[1]
`);

const skillsPerCall = 500;

const toZaddArguments = (skillIds: readonly string[]): (string | number)[] =>
  skillIds.flatMap((id) => [0, id]);

export async function registerSkills(client: RedisClient, tenant: string, skillIds: readonly string[]) {
  for (const page of splitIntoParts(skillIds, skillsPerCall)) {
    const both = client.multi().zadd(registeredSkillsKey(tenant), ...toZaddArguments(page));
    await executeAll(both.hdel(rareSkillsKey(tenant), ...page));
  }
}

export type RegisteredSkills = ReturnType<typeof createRegisteredSkills>;

/** Skills that were answered or configured. All functions throw ApiError UNAVAILABLE. */
export const createRegisteredSkills = (client: RedisClient) => ({
  /** Sorted by UTF-8 bytes. */
  list: (tenant: string, after: string | null, atMost: number): Promise<string[]> => {
    const from = after === null ? '-' : `(${after}`;
    return mapRedisErrors(client.zrangebylex(registeredSkillsKey(tenant), from, '+', 'LIMIT', 0, atMost));
  },
  has: async (tenant: string, skillId: string): Promise<boolean> =>
    (await areRegisteredSkills(client, tenant, [skillId]))[0] === true,
  /** The next learner who is new to the skill registers it again. */
  unregister: async (tenant: string, skillId: string): Promise<void> => {
    const both = client.multi().zrem(registeredSkillsKey(tenant), skillId);
    await executeAll(both.hdel(rareSkillsKey(tenant), skillId));
    // The skill may have been configured in the meantime.
    const isSet = await mapRedisErrors(client.hexists(catalogueKey(tenant), skillId));
    if (isSet === 1) await registerSkills(client, tenant, [skillId]);
  },
});

/** Idempotent. `notRare`: skills that need no further learners. */
export async function recordLearners(
  client: RedisClient,
  tenant: string,
  answered: readonly { readonly skillId: string; readonly userId: string }[],
) {
  const pairs = answered.flatMap(({ skillId, userId }) => [skillId, hashText(userId)]);
  const [size, notRare] = await addLearnersScript(
    client,
    registeredSkillsKey(tenant),
    rareSkillsKey(tenant),
    ...pairs,
  );
  return { size, notRare };
}

export async function registerRareSkills(client: RedisClient, tenant: string, skillIds: readonly string[]) {
  const commands = client.multi().zadd(registeredSkillsKey(tenant), ...toZaddArguments(skillIds));
  for (const skillId of skillIds) commands.hsetnx(rareSkillsKey(tenant), skillId, '');
  await executeAll(commands);
}

export async function removeLearners(client: RedisClient, tenant: string, userIds: readonly string[]) {
  const hashes = userIds.map(hashText);
  let cursor = '0';
  do {
    cursor = await removeLearnersScript(client, rareSkillsKey(tenant), cursor, skillsPerCall, ...hashes);
  } while (cursor !== '0');
}

/** Skills for forecasts: configured, or answered by enough learners. */
export async function countCommonSkills(client: RedisClient, tenant: string): Promise<number> {
  // In this order, the difference is never negative, even if a skill is added in between.
  const counts = [client.hlen(rareSkillsKey(tenant)), client.zcard(registeredSkillsKey(tenant))] as const;
  const [rare, all] = await mapRedisErrors(Promise.all(counts));
  return all - rare;
}

export async function areRegisteredSkills(client: RedisClient, tenant: string, skillIds: readonly string[]) {
  const scores = await mapRedisErrors(client.zmscore(registeredSkillsKey(tenant), ...skillIds));
  return scores.map((score) => score !== null);
}

/** `excess`: unregistered skills above the limit. */
export async function findExcessSkills(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
  limit: number,
) {
  const [size, registered] = await Promise.all([
    mapRedisErrors(client.zcard(registeredSkillsKey(tenant))),
    areRegisteredSkills(client, tenant, skillIds),
  ]);
  const unregistered = skillIds.filter((_, i) => !registered[i]);
  return { size, excess: unregistered.slice(Math.max(0, limit - size)) };
}
