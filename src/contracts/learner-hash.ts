/**
 * A learner's name as a hash, for what must know a learner again without saying whom: the same in Redis and in
 * ClickHouse. Who knows the id can still ask for it, so it is kept for some days only.
 */
import { createHash } from 'node:crypto';

/** 16 bytes, in hex. */
export const learnerHash = (tenant: string, userId: string): string =>
  createHash('sha256').update(`${tenant}:${userId}`).digest('hex').slice(0, 32);

/** Expression over the columns tenant and user_id. */
export const learnerHashSql = "lower(hex(substring(SHA256(concat(tenant, ':', user_id)), 1, 16)))";
