/** Which skills a tenant's learners answer, and which of them count as known. */
import { type RedisClient, resultsOf, whileRedisServes } from './client.js';
import { knownSkillsKey, rareSkillsKey } from './keys.js';
import { hashText } from './text-hash.js';

/** A skill, and a learner who answered it. */
export interface SkillLearner {
  readonly skillId: string;
  readonly userId: string;
}

/** Skills of one script call: it must not hold Redis up. */
const pageSkills = 500;

/** Notes skills that count whoever answers them: those that are set. */
export async function addKnownSkills(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
): Promise<void> {
  const both = client.multi().sadd(knownSkillsKey(tenant), ...skillIds);
  await whileRedisServes(resultsOf(both.hdel(rareSkillsKey(tenant), ...skillIds)));
}

/**
 * Notes who answered which skills; may be repeated.
 *
 * Who picks user ids whose hashes meet keeps his own tenant's skill rare for longer.
 *
 * @returns those of the skills of which it need not be noted any more
 */
export const noteLearners = (
  client: RedisClient,
  tenant: string,
  answered: readonly SkillLearner[],
): Promise<string[]> => {
  const pairs = answered.flatMap(({ skillId, userId }) => [skillId, hashText(userId)]);
  return whileRedisServes(client.noteLearners(knownSkillsKey(tenant), rareSkillsKey(tenant), ...pairs));
};

/** Makes skills rare until it is noted who answered them: earlier versions of the service noted nobody. */
export async function makeRare(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
): Promise<void> {
  const commands = client.multi().sadd(knownSkillsKey(tenant), ...skillIds);
  for (const skillId of skillIds) commands.hsetnx(rareSkillsKey(tenant), skillId, '');
  await whileRedisServes(resultsOf(commands));
}

/** Forgets which rare skills the learners answered. What they answer meanwhile may be forgotten with it. */
export async function forgetLearners(
  client: RedisClient,
  tenant: string,
  userIds: readonly string[],
): Promise<void> {
  const hashes = userIds.map(hashText);
  let cursor = '0';
  do {
    const page = client.forgetLearners(rareSkillsKey(tenant), cursor, pageSkills, ...hashes);
    cursor = await whileRedisServes(page);
  } while (cursor !== '0');
}

/** How many skills forecasts count as known: those that are set, or answered by learners enough. */
export async function countKnownSkills(client: RedisClient, tenant: string): Promise<number> {
  // In this order: a skill that comes in between is counted among all, and the difference is never below 0.
  const counts = [client.hlen(rareSkillsKey(tenant)), client.scard(knownSkillsKey(tenant))] as const;
  const [rare, all] = await whileRedisServes(Promise.all(counts));
  return all - rare;
}

/** The skills that were ever answered or set, in no order. */
export const listKnownSkills = (client: RedisClient, tenant: string): Promise<string[]> =>
  whileRedisServes(client.smembers(knownSkillsKey(tenant)));

export const isKnownSkill = async (client: RedisClient, tenant: string, skillId: string): Promise<boolean> =>
  (await whileRedisServes(client.sismember(knownSkillsKey(tenant), skillId))) === 1;

/** Which of the skills were ever answered or set, in their order. */
export async function areKnownSkills(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
): Promise<boolean[]> {
  const found = await whileRedisServes(client.smismember(knownSkillsKey(tenant), ...skillIds));
  return found.map((member) => member === 1);
}
