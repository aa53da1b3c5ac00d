/**
 * The names of everything kept in Redis, in one place.
 *
 * All keys of a learner, and the outbox and event ids of the learner's partition, share the hash tag `{pN}`:
 * one script call over them is atomic on a single node and on Redis Cluster alike. A tenant has no colon
 * (config.ts), so `tenant:user` cannot be ambiguous.
 */
import { createHash } from 'node:crypto';

/** Deployment facts: `partitions`, `deployment_id`, `created_at`. */
export const metaKey = 'st:meta';
/** API keys: field = SHA-256 of the key, value = JSON of its grant. */
export const apiKeysKey = 'st:keys';

const tag = (partition: number): string => `st:{p${partition}}`;

/** Learner hash: one field for the learner, one per skill. */
export const learnerKey = (partition: number, tenant: string, userId: string): string =>
  `${tag(partition)}:l:${tenant}:${userId}`;
/** Outbox stream: one entry per attempt, field `r` = the row as TSV without its outbox columns. */
export const outboxKey = (partition: number): string => `${tag(partition)}:out`;
/** Marker of the deployment: absent means that this Redis is new, or came back empty. */
export const markerKey = (partition: number): string => `${tag(partition)}:m`;
/** Set of the tenant's skills that were ever answered. */
export const knownSkillsKey = (tenant: string): string => `st:skills:${tenant}`;
/** Request counter of one API key in its current quota window. */
export const quotaKey = (keyHash: string): string => `st:quota:${keyHash}`;

/** Partition of a learner, 0 to partitions - 1; the same in every process and for ever. */
export function partitionOf(tenant: string, userId: string, partitions: number): number {
  const digest = createHash('sha1').update(tenant).update('\0').update(userId).digest();
  return digest.readUInt32LE(0) % partitions;
}
