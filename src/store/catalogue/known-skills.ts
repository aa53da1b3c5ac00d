import { minRegisteredLearners } from '../../domain/base/score-constants.js';
import { splitIntoParts } from '../../lists.js';
import { hashText } from '../redis/binary.js';
import { type RedisClient, resultsOf, whileRedisServes } from '../redis/client.js';
import { catalogueKey, knownSkillsKey, rareSkillsKey } from '../redis/keys.js';
import { defineScript } from '../redis/script.js';

/**
 * A skill is rare until enough learners answered it. Pairs: skill and 8 bytes of learner hash. Result: number
 * of the tenant's skills; given skills that are not rare.
 */
const addToRare = defineScript(2)<
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

/** Result: next cursor. */
const takeOffRare = defineScript(1)<
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

const pageSkills = 500;

const members = (skillIds: readonly string[]): (string | number)[] => skillIds.flatMap((id) => [0, id]);

export async function addKnownSkills(client: RedisClient, tenant: string, skillIds: readonly string[]) {
  for (const page of splitIntoParts(skillIds, pageSkills)) {
    const both = client.multi().zadd(knownSkillsKey(tenant), ...members(page));
    await resultsOf(both.hdel(rareSkillsKey(tenant), ...page));
  }
}

export type KnownSkills = ReturnType<typeof createKnownSkills>;

/** Skills that were answered or configured. All functions throw ApiError UNAVAILABLE. */
export const createKnownSkills = (client: RedisClient) => ({
  /** Sorted by UTF-8 bytes. */
  list: (tenant: string, after: string | null, atMost: number): Promise<string[]> => {
    const from = after === null ? '-' : `(${after}`;
    return whileRedisServes(client.zrangebylex(knownSkillsKey(tenant), from, '+', 'LIMIT', 0, atMost));
  },
  has: async (tenant: string, skillId: string): Promise<boolean> =>
    (await areKnownSkills(client, tenant, [skillId]))[0] === true,
  /** The next learner who is new to the skill registers it again. */
  forget: async (tenant: string, skillId: string): Promise<void> => {
    const both = client.multi().zrem(knownSkillsKey(tenant), skillId);
    await resultsOf(both.hdel(rareSkillsKey(tenant), skillId));
    // The skill may have been configured in the meantime.
    const isSet = await whileRedisServes(client.hexists(catalogueKey(tenant), skillId));
    if (isSet === 1) await addKnownSkills(client, tenant, [skillId]);
  },
});

/** Idempotent. `notRare`: skills that need no further learners. */
export async function noteLearners(
  client: RedisClient,
  tenant: string,
  answered: readonly { readonly skillId: string; readonly userId: string }[],
) {
  const pairs = answered.flatMap(({ skillId, userId }) => [skillId, hashText(userId)]);
  const [size, notRare] = await addToRare(client, knownSkillsKey(tenant), rareSkillsKey(tenant), ...pairs);
  return { size, notRare };
}

export async function makeRare(client: RedisClient, tenant: string, skillIds: readonly string[]) {
  const commands = client.multi().zadd(knownSkillsKey(tenant), ...members(skillIds));
  for (const skillId of skillIds) commands.hsetnx(rareSkillsKey(tenant), skillId, '');
  await resultsOf(commands);
}

export async function forgetLearners(client: RedisClient, tenant: string, userIds: readonly string[]) {
  const hashes = userIds.map(hashText);
  let cursor = '0';
  do {
    cursor = await takeOffRare(client, rareSkillsKey(tenant), cursor, pageSkills, ...hashes);
  } while (cursor !== '0');
}

/** Skills for forecasts: configured, or answered by enough learners. */
export async function countKnownSkills(client: RedisClient, tenant: string): Promise<number> {
  // In this order, the difference is never negative, even if a skill is added in between.
  const counts = [client.hlen(rareSkillsKey(tenant)), client.zcard(knownSkillsKey(tenant))] as const;
  const [rare, all] = await whileRedisServes(Promise.all(counts));
  return all - rare;
}

export async function areKnownSkills(client: RedisClient, tenant: string, skillIds: readonly string[]) {
  const scores = await whileRedisServes(client.zmscore(knownSkillsKey(tenant), ...skillIds));
  return scores.map((score) => score !== null);
}

/** `excess`: unregistered skills above the limit. */
export async function unknownBeyond(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
  limit: number,
) {
  const [size, known] = await Promise.all([
    whileRedisServes(client.zcard(knownSkillsKey(tenant))),
    areKnownSkills(client, tenant, skillIds),
  ]);
  const unknown = skillIds.filter((_, i) => !known[i]);
  return { size, refused: unknown.slice(Math.max(0, limit - size)) };
}
