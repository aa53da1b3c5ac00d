/** The Lua scripts of who answered a tenant's rare skills. */
import { learnersOfKnownSkill } from '../../domain/base/params.js';
import { defineScript } from '../redis/script.js';

/**
 * Notes learners who answered skills; those who are noted already change nothing. A skill is rare from its first answer
 * until enough learners answered it: then nobody needs to know who they were.
 * KEYS: sorted set of the tenant's skills, hash of the rare ones. ARGV: skill and 8 bytes of learner hash, in turn.
 * Result: how many skills the tenant knows; those of the skills that are not rare (any more).
 */
export const addToRare = defineScript(2)<
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
    if #list < ${8 * learnersOfKnownSkill} then
      redis.call('HSET', rare, skill, list)
    else
      redis.call('HDEL', rare, skill)
      common[#common + 1] = skill
    end
  end
end
return { redis.call('ZCARD', skills), common }
`);

/**
 * Takes learners off the lists of some rare skills, which stay rare: with an empty list, if need be.
 * KEYS: hash of the rare skills. ARGV: cursor ('0' at first), how many skills, about; hashes of learners.
 * Result: cursor for the next ones; '0' behind the last.
 */
export const takeOffRare = defineScript(1)<
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
