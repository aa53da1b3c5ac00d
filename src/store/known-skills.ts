/** Which skills a tenant's learners answer, in one set. */
import { type RedisClient, whileRedisServes } from './client.js';
import { knownSkillsKey } from './keys.js';

/** Notes that the tenant's learners answer these skills. */
export async function addKnownSkills(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
): Promise<void> {
  await whileRedisServes(client.sadd(knownSkillsKey(tenant), ...skillIds));
}

export const countKnownSkills = (client: RedisClient, tenant: string): Promise<number> =>
  whileRedisServes(client.scard(knownSkillsKey(tenant)));

/** The skills that the tenant's learners answer, in no order. */
export const listKnownSkills = (client: RedisClient, tenant: string): Promise<string[]> =>
  whileRedisServes(client.smembers(knownSkillsKey(tenant)));

export const isKnownSkill = async (client: RedisClient, tenant: string, skillId: string): Promise<boolean> =>
  (await whileRedisServes(client.sismember(knownSkillsKey(tenant), skillId))) === 1;

/** Which of the skills the tenant knows, in their order. */
export async function areKnownSkills(
  client: RedisClient,
  tenant: string,
  skillIds: readonly string[],
): Promise<boolean[]> {
  const found = await whileRedisServes(client.smismember(knownSkillsKey(tenant), ...skillIds));
  return found.map((member) => member === 1);
}
