/**
 * Contents of the keys: docs/understand/architecture.md. Keys of a partition share the hash tag `{pN}`, so that
 * transactions and scripts are atomic on a Cluster, too.
 */
import { learnerName } from '../../contracts/learners/learner-name.js';
import { tenantDay } from '../../contracts/schema/tenant-day.js';
import { formulaVersion } from '../../domain/base/formula-version.js';

export const metaKey = 'st:meta';
export const apiKeysKey = 'st:keys';
/** Key hash → Unix ms of the last use, to the minute. */
export const lastUsesKey = 'st:keys:used';
/** Both share a slot. */
export const activityKey = (tenant: string | null): string =>
  tenant === null ? 'st:{activity}' : `st:{activity}:${tenant}`;
export const minutesKey = 'st:minutes';

export const partitionPrefix = (partition: number): string => `st:{p${partition}}`;

export const learnerKey = (partition: number, tenant: string, userId: string): string =>
  `${partitionPrefix(partition)}:l:${learnerName(tenant, userId)}`;
export const itemTracesKey = (partition: number, parity: number, tenant: string, userId: string): string =>
  `${partitionPrefix(partition)}:h${parity}:${learnerName(tenant, userId)}`;
export const eventIdsKey = (partition: number, tenant: string, userId: string): string =>
  `${partitionPrefix(partition)}:e:${learnerName(tenant, userId)}`;
/** Dummy write, so that WAIT covers writes of other connections (replication.ts). */
export const replicationProbeKey = (partition: number): string => `${partitionPrefix(partition)}:wait`;
/** Fields: `r`, rows (contracts/outbox/outbox-ids.ts); or `c`, a rewrite (contracts/corrections/corrections.ts). */
export const outboxKey = (partition: number): string => `${partitionPrefix(partition)}:out`;
export const outboxRowCountKey = (partition: number): string => `${outboxKey(partition)}:rows`;
/** Outbox ids of pending erasures. Field `c`: erasure id. */
export const dueErasuresKey = (partition: number): string => `${partitionPrefix(partition)}:due`;
/** For the audit. `removedCountsKey`: erased or retracted answers. */
export const acceptedCountsKey = (partition: number): string => `${partitionPrefix(partition)}:accepted`;
export const removedCountsKey = (partition: number): string => `${partitionPrefix(partition)}:removed`;
/** @param day UTC day of arrival, days since 1970 */
export const acceptedField = tenantDay;
export const auditKey = 'st:audit';
export const auditLockKey = 'st:audit:lock';
export const demoLockKey = (tenant: string): string => `st:demo:lock:${tenant}`;
/** Field: learner's key. Value: last counted line. */
export const importMarksKey = (partition: number, id: string): string =>
  `${partitionPrefix(partition)}:import:${id}`;
export const archiveFenceKey = (partition: number): string => `${partitionPrefix(partition)}:archived`;
/** Dead-letter rows, with `id` (previous id) and `reason`. */
export const parkedKey = (stream: string): string => `${stream}:parked`;
/** About 6 MB. When full, rejected rows wait in their stream. */
export const maxParkedRows = 10_000;
/** Fields: erasure id → record (JSON); `@TENANT:USER` → erasure id. */
export const erasuresKey = (partition: number): string => `${partitionPrefix(partition)}:erasures`;
export const erasedLearnersKey = (partition: number): string => `${partitionPrefix(partition)}:erased`;
/**
 * Version of the formulas, a dot, version of the layout. A rebuild rewrites all keys, and must remove keys
 * that a new layout drops.
 */
export const stateVersion = `${formulaVersion}.8`;
export const markerName = `m${stateVersion}`;
/**
 * Missing if Redis is new, lost its data, or has learners of another version. The version in the name stops
 * other versions from counting answers.
 */
export const markerKey = (partition: number, version = stateVersion): string =>
  `${partitionPrefix(partition)}:m${version}`;
/** `k`, kind; `r`, row (contracts/journal/journal.ts). */
export const journalKey = (partition: number): string => `${partitionPrefix(partition)}:journal`;
/** Further changes are rejected. */
export const maxJournalEntries = 100_000;
export const forecastsKey = (partition: number): string => `${partitionPrefix(partition)}:forecasts`;
export const registeredSkillsKey = (tenant: string): string => `st:skills:${tenant}`;
/** The hash tag is the other key's name: both share a slot. */
export const rareSkillsKey = (tenant: string): string => `st:{${registeredSkillsKey(tenant)}}:rare`;
export const eventIdSweepKey = 'st:ids:sweep';
export const quotaKey = (keyHash: string): string => `st:quota:${keyHash}`;

export const catalogueKey = (tenant: string): string => `st:{catalogues}:skills:${tenant}`;
/** Tenant → number of changes, Unix ms of the last and time zone (none: UTC). */
export const catalogueRevisionsKey = 'st:{catalogues}:revisions';
export const catalogueChangesKey = (tenant: string): string => `st:{catalogues}:changes:${tenant}`;
/** Tenant → JSON (settings/time-zones.ts). */
export const timeZonesKey = 'st:{catalogues}:zones';
export const catalogueJournalKey = 'st:{catalogues}:journal';

export const xapiMappingsKey = 'st:xapi:mappings';

export const activeModelsKey = 'st:{models}:in-force';
export const modelLogKey = (tenant: string): string => `st:{models}:log:${tenant}`;
export const lastFitsKey = 'st:models:fits';
const modelPrefix = (tenant: string): string => `st:{m:${tenant}}`;
/** Tenant → Unix ms of its calibration. */
export const calibratedTenantsKey = 'st:models:calibrated';
export const calibrationKey = (tenant: string): string => `${modelPrefix(tenant)}:calibration`;
export const newestModelKey = (tenant: string): string => `${modelPrefix(tenant)}:newest`;
export const modelVersionsKey = (tenant: string): string => `${modelPrefix(tenant)}:versions`;
export const modelVersionKey = (tenant: string, version: number): string =>
  `${modelPrefix(tenant)}:v:${version}`;
export const modelItemsKey = (tenant: string, version: number): string =>
  `${modelPrefix(tenant)}:i:${version}`;

export const webhookEventsKey = (partition: number): string => `${partitionPrefix(partition)}:events`;
export const modelEventsKey = 'st:{models}:events';
/** Per stream. Above it, the oldest events are removed. */
export const maxPendingEvents = 100_000;
/** Learner name → Unix ms of the next check. Prefix `!`: claimed until then. */
export const goalChecksKey = (partition: number): string => `${partitionPrefix(partition)}:goal:checks`;
/** Learner name → alerts (learners/goal-checks.ts). */
export const goalAlertsKey = (partition: number): string => `${partitionPrefix(partition)}:goal:alerts`;
/** Tenant → subscribed event types. All keys of endpoints and messages share this slot. */
export const subscriptionsKey = 'st:{webhooks}:wanted';
/** Endpoint (`TENANT:ID`) → Unix ms of the next attempt. */
export const nextDeliveriesKey = 'st:{webhooks}:next';
export const messagesPrefix = (webhookId: string): string => `st:{webhooks}:m:${webhookId}`;
export const endpointMessageKeys = (webhookId: string): string[] =>
  ['s', 'b', 'log', 'due', 'last'].map((name) => `${messagesPrefix(webhookId)}:${name}`);
export const groupsPrefix = 'st:{groups}';
/** Tenants that changed a group. If the key is missing, Redis lost the groups. */
export const groupTenantsKey = `${groupsPrefix}:tenants`;
/** Group id → JSON (groups/group-store.ts). */
export const groupsKey = (tenant: string): string => `${groupsPrefix}:g:${tenant}`;
/** User id → Unix ms of joining. */
export const groupMembersKey = (tenant: string, groupId: string): string =>
  `${groupsPrefix}:m:${tenant}:${groupId}`;
/** Group ids of a learner. */
export const learnerGroupsKey = (tenant: string, userId: string): string =>
  `${groupsPrefix}:l:${learnerName(tenant, userId)}`;
export const groupsJournalKey = `${groupsPrefix}:journal`;
export const profileKey = (partition: number, tenant: string, userId: string): string =>
  `${partitionPrefix(partition)}:u:${learnerName(tenant, userId)}`;
export const endpointsKey = (tenant: string): string => `st:{webhooks}:e:${tenant}`;
export const webhooksJournalKey = 'st:{webhooks}:journal';
export const sharedJournalKeys = [catalogueJournalKey, webhooksJournalKey, groupsJournalKey] as const;

/** Never change it. FNV-1a over UTF-16 code units with murmur3's finaliser. */
export function partitionOf(tenant: string, userId: string, partitions: number): number {
  let hash = 0x811c9dc5;
  for (const text of [tenant, ':', userId]) {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % partitions;
}
