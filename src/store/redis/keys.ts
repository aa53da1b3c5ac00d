/**
 * All Redis keys; docs/architecture.md describes their contents. Keys of a partition share the hash tag `{pN}`: one transaction
 * or script over them is atomic on a single node and on a Cluster.
 */
import { learnerName } from '../../contracts/learner-name.js';
import { tenantDay } from '../../contracts/tenant-day.js';
import { modelVersion } from '../../domain/base/model-version.js';

export const metaKey = 'st:meta';
export const apiKeysKey = 'st:keys';

export const partitionPrefix = (partition: number): string => `st:{p${partition}}`;

export const learnerKey = (partition: number, tenant: string, userId: string): string =>
  `${partitionPrefix(partition)}:l:${learnerName(tenant, userId)}`;
export const itemTracesKey = (partition: number, parity: number, tenant: string, userId: string): string =>
  `${partitionPrefix(partition)}:h${parity}:${learnerName(tenant, userId)}`;
export const eventIdsKey = (partition: number, tenant: string, userId: string): string =>
  `${partitionPrefix(partition)}:e:${learnerName(tenant, userId)}`;
/** Written so that WAIT covers writes of others (replication.ts). */
export const waitKey = (partition: number): string => `${partitionPrefix(partition)}:wait`;
/** Fields: `r`, rows of a commit (contracts/outbox-ids.ts); or `c`, a rewrite (contracts/corrections.ts). */
export const outboxKey = (partition: number): string => `${partitionPrefix(partition)}:out`;
export const outboxRowsKey = (partition: number): string => `${outboxKey(partition)}:rows`;
/** Pending erasures by outbox id. Field `c`: the erasure's id. */
export const dueKey = (partition: number): string => `${partitionPrefix(partition)}:due`;
/** Counted answers, for the audit. `removedKey`: those that were erased or retracted. */
export const acceptedKey = (partition: number): string => `${partitionPrefix(partition)}:accepted`;
export const removedKey = (partition: number): string => `${partitionPrefix(partition)}:removed`;
/** Field of both. @param day UTC day of arrival, days since 1970 */
export const acceptedField = tenantDay;
export const auditKey = 'st:audit';
export const demoLockKey = (tenant: string): string => `st:demo:lock:${tenant}`;
/** Field: learner's key. Value: last counted line. */
export const importMarksKey = (partition: number, id: string): string =>
  `${partitionPrefix(partition)}:import:${id}`;
export const archivedKey = (partition: number): string => `${partitionPrefix(partition)}:archived`;
/** Dead-letter rows: the entry's fields, `id` (its previous id) and `reason`. */
export const parkedKey = (stream: string): string => `${stream}:parked`;
/** Maximum entries, about 6 MB. When full, rejected rows wait in their stream. */
export const parkedBound = 10_000;
/** Fields: erasure id with its record as JSON; `@TENANT:USER` with the erasure's id. */
export const erasuresKey = (partition: number): string => `${partitionPrefix(partition)}:erasures`;
export const endedKey = (partition: number): string => `${partitionPrefix(partition)}:erased`;
/**
 * Version of stored learners: version of the formulas, a point, version of the layout (keys and their contents). A rebuild
 * rewrites every learner's keys. A layout that drops a key must remove it there.
 */
export const keptNow = `${modelVersion}.6`;
export const markerName = `m${keptNow}`;
/**
 * Absent if this Redis is new, came back empty, or has learners of another version. The name contains the version, so that a
 * process of another version counts nothing.
 */
export const markerKey = (partition: number, kept = keptNow): string =>
  `${partitionPrefix(partition)}:m${kept}`;
/** Facts that only Redis has: `k`, kind; `r`, row (contracts/journal.ts). */
export const journalKey = (partition: number): string => `${partitionPrefix(partition)}:journal`;
/** Maximum entries of a journal. Further changes are rejected. */
export const journalBound = 100_000;
export const forecastsKey = (partition: number): string => `${partitionPrefix(partition)}:forecasts`;
export const knownSkillsKey = (tenant: string): string => `st:skills:${tenant}`;
/** The name of the other key is the hash tag: both have one slot. */
export const rareSkillsKey = (tenant: string): string => `st:{${knownSkillsKey(tenant)}}:rare`;
export const idSweepKey = 'st:ids:sweep';
export const quotaKey = (keyHash: string): string => `st:quota:${keyHash}`;

export const catalogueKey = (tenant: string): string => `st:{catalogues}:skills:${tenant}`;
/** By tenant: number of changes, Unix milliseconds of the last. */
export const catalogueRevisionsKey = 'st:{catalogues}:revisions';
export const catalogueChangesKey = (tenant: string): string => `st:{catalogues}:changes:${tenant}`;
export const catalogueJournalKey = 'st:{catalogues}:journal';

export const xapiMappingsKey = 'st:xapi:mappings';

export const modelsKey = 'st:{models}:in-force';
export const modelLogKey = (tenant: string): string => `st:{models}:log:${tenant}`;
export const fitsKey = 'st:models:fits';
const modelPrefix = (tenant: string): string => `st:{m:${tenant}}`;
export const newestVersionKey = (tenant: string): string => `${modelPrefix(tenant)}:newest`;
export const versionsKey = (tenant: string): string => `${modelPrefix(tenant)}:versions`;
export const versionKey = (tenant: string, version: number): string => `${modelPrefix(tenant)}:v:${version}`;
export const itemsKey = (tenant: string, version: number): string => `${modelPrefix(tenant)}:i:${version}`;

/** Events that are no messages yet (contracts/webhook-events.ts). */
export const eventsKey = (partition: number): string => `${partitionPrefix(partition)}:events`;
export const modelEventsKey = 'st:{models}:events';
/** Maximum entries; the oldest are removed. An endpoint with as many undelivered messages is disabled. */
export const eventsBound = 100_000;
/** By learner's name: Unix milliseconds of the next check. `!` before the name: claimed until then. */
export const goalChecksKey = (partition: number): string => `${partitionPrefix(partition)}:goal:checks`;
/** By learner's name: raised alerts (learners/goal-checks.ts). */
export const goalAlertsKey = (partition: number): string => `${partitionPrefix(partition)}:goal:alerts`;
/** By tenant: types that its endpoints want (`isWanted`). All keys of endpoints and messages share this slot. */
export const wantedEventsKey = 'st:{webhooks}:wanted';
/** Endpoints (`TENANT:ID`) by Unix milliseconds of the next try. */
export const nextTriesKey = 'st:{webhooks}:next';
/** Prefix of an endpoint's messages (store/webhooks/message-scripts.ts). */
export const messagesKey = (webhookId: string): string => `st:{webhooks}:m:${webhookId}`;
export const messageKeys = (webhookId: string): string[] =>
  ['s', 'b', 'log', 'due', 'last'].map((name) => `${messagesKey(webhookId)}:${name}`);
export const endpointsKey = (tenant: string): string => `st:{webhooks}:e:${tenant}`;
export const webhooksJournalKey = 'st:{webhooks}:journal';
export const sharedJournals = [catalogueJournalKey, webhooksJournalKey] as const;

/** 0 to partitions - 1; must never change. FNV-1a over UTF-16 code units with murmur3's finaliser: placement, not security. */
export function partitionOf(tenant: string, userId: string, partitions: number): number {
  let hash = 0x811c9dc5;
  for (const text of [tenant, ':', userId]) {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % partitions;
}
