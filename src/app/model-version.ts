/** Keeps this version away from learners that another one keeps otherwise. */
import { StartError } from '../lifecycle.js';
import { type RedisClient, whileRedisServes } from '../store/redis/client.js';
import { otherVersion, unusableReason } from '../store/redis/deployment.js';

/**
 * To be called before the schema is brought up to date: the version before has to drain what it left, and refuses a newer
 * schema.
 *
 * @throws StartError for a deployment of another version; ApiError UNAVAILABLE
 */
export async function refuseOtherVersion(redis: RedisClient): Promise<void> {
  const other = await whileRedisServes(otherVersion(redis));
  if (other !== null) throw new StartError(unusableReason(other));
}
