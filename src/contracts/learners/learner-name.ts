import { createHash } from 'node:crypto';

export interface LearnerId {
  readonly tenant: string;
  readonly userId: string;
}

/** Unique: a tenant has no colon. */
export const learnerName = (tenant: string, userId: string): string => `${tenant}:${userId}`;

export function splitTenantName(name: string): readonly [tenant: string, rest: string] {
  const colon = name.indexOf(':');
  return [name.slice(0, colon), name.slice(colon + 1)];
}

export const learnerNameSql = "concat(tenant, ':', user_id)";

/**
 * Recognises a learner without storing the id. Store it for a few days only: anyone who knows the id can
 * compute it.
 */
export const hashLearner = (tenant: string, userId: string): string =>
  createHash('sha256').update(learnerName(tenant, userId)).digest('hex').slice(0, 32);

export const learnerHashSql = `lower(hex(substring(SHA256(${learnerNameSql}), 1, 16)))`;
