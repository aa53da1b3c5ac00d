/** A learner as one text, with the tenant: the same in Redis and in ClickHouse. */
import { createHash } from 'node:crypto';

export interface LearnerPlace {
  readonly tenant: string;
  readonly userId: string;
}

/** No two learners share it: a tenant has no colon. */
export const learnerName = (tenant: string, userId: string): string => `${tenant}:${userId}`;

/** The tenant of such a name, and what stands behind it. */
export function partsOfName(name: string): readonly [tenant: string, rest: string] {
  const colon = name.indexOf(':');
  return [name.slice(0, colon), name.slice(colon + 1)];
}

export const learnerNameSql = "concat(tenant, ':', user_id)";

/**
 * The name's hash, 16 bytes in hex, for what must know a learner again without saying whom. Who knows the id can still
 * ask for it, so it is kept for some days only.
 */
export const learnerHash = (tenant: string, userId: string): string =>
  createHash('sha256').update(learnerName(tenant, userId)).digest('hex').slice(0, 32);

export const learnerHashSql = `lower(hex(substring(SHA256(${learnerNameSql}), 1, 16)))`;
