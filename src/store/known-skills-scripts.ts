/** The Lua scripts of who answered a tenant's rare skills. */
import type { Result } from 'ioredis';
import { learnersOfKnownSkill } from '../domain/params.js';

/**
 * Notes learners who answered skills; those who are noted already change nothing. A skill is rare from its first answer
 * until enough learners answered it: then nobody needs to know who they were.
 * KEYS: sorted set of the tenant's skills, hash of the rare ones. ARGV: skill and 8 bytes of learner hash, in turn.
 * Result: how many skills the tenant knows; those of the skills that are not rare (any more).
 */
export const noteLearnersScript = `
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
    if #list < ${8 * learnersOfKnownSkill} then
      redis.call('HSET', rare, skill, list)
    else
      redis.call('HDEL', rare, skill)
      common[#common + 1] = skill
    end
  end
end
return { redis.call('ZCARD', skills), common }
`;

/** Whether a skill was made known now, was known before, or has no room. */
export type Admission = 'new' | 'known' | 'full';

/**
 * Makes skills known that are about to be set, as far as there is room. Until they are set they are rare, without a learner.
 * KEYS: as above. ARGV: most skills of the tenant; the skills.
 * Result: for each of them its `Admission`.
 */
export const admitSkillsScript = `
local room = tonumber(ARGV[1]) - redis.call('ZCARD', KEYS[1])
local results = {}
for i = 2, #ARGV do
  local result = redis.call('ZSCORE', KEYS[1], ARGV[i]) and 'known' or room > 0 and 'new' or 'full'
  if result == 'new' then
    room = room - 1
    redis.call('ZADD', KEYS[1], 0, ARGV[i])
    redis.call('HSET', KEYS[2], ARGV[i], '')
  end
  results[#results + 1] = result
end
return results
`;

/**
 * Takes back what was admitted and then not set, unless a learner answered it meanwhile.
 * KEYS: as above. ARGV: the skills.
 */
export const releaseSkillsScript = `
for i = 1, #ARGV do
  if redis.call('HGET', KEYS[2], ARGV[i]) == '' then
    redis.call('HDEL', KEYS[2], ARGV[i])
    redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
`;

/**
 * Takes learners off the lists of some rare skills, which stay rare: with an empty list, if need be.
 * KEYS: hash of the rare skills. ARGV: cursor ('0' at first), how many skills, about; hashes of learners.
 * Result: cursor for the next ones; '0' behind the last.
 */
export const forgetLearnersScript = `
local gone = {}
for i = 3, #ARGV do gone[ARGV[i]] = '' end
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
for i = 1, #page[2], 2 do
  local list = page[2][i + 1]
  local left = string.gsub(list, '........', gone)
  if #left < #list then redis.call('HSET', KEYS[1], page[2][i], left) end
end
return page[1]
`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    noteLearners(
      skills: string,
      rare: string,
      ...pairs: (string | Buffer)[]
    ): Result<[size: number, notRare: string[]], Context>;
    admitSkills(
      skills: string,
      rare: string,
      limit: number,
      ...skillIds: string[]
    ): Result<Admission[], Context>;
    releaseSkills(skills: string, rare: string, ...skillIds: string[]): Result<null, Context>;
    forgetLearners(
      rare: string,
      cursor: string,
      skills: number,
      ...learners: Buffer[]
    ): Result<string, Context>;
  }
}
