/** What the audit reads of Redis: one partition at a time, in steps of a millisecond or less. */

import { rowColumns } from '../../contracts/attempt-row.js';
import { learnerHash } from '../../contracts/learner-name.js';
import { firstRowOf, lastRowOf, type OutboxId } from '../../contracts/outbox-ids.js';
import { readTenantDay, tenantDay } from '../../contracts/tenant-day.js';
import { indices } from '../../lists.js';
import { findErased } from '../corrections/erased-learners.js';
import { epochOf } from '../outbox/outbox.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { acceptedKey, auditKey, dueKey, outboxKey, parkedKey, removedKey } from '../redis/keys.js';
import { fieldOf } from '../redis/reads.js';
import { defineScript } from '../redis/script.js';

/** What is remembered of the last audit. */
export interface AuditRecord {
  /** When it ended, Unix milliseconds. */
  readonly at: number;
  readonly seconds: number;
  /** Mismatches by kind; kinds without any are not named. */
  readonly mismatches: Readonly<Record<string, number>>;
  /** Things that could not be compared. */
  readonly notCompared: number;
}

export type AuditStore = ReturnType<typeof createAuditStore>;

/** Rows are parked and redriven seldom: that many looks in a row are not disturbed by it. */
const maxTries = 20;

export function createAuditStore(client: RedisClient, partitions: number) {
  const serve = whileRedisServes;
  return {
    partitions: indices(partitions),
    look: (partition: number, signal: AbortSignal): Promise<PartitionLook> =>
      lookAt(client, partition, signal),
    /** First day that the partition counts accepted answers of; Infinity where it has counted none. */
    oldestDay: async (partition: number): Promise<number> => {
      const { accepted, prunedThrough } = await factsOf(client, partition);
      const days = [...accepted.keys()].map((name) => readTenantDay(name).day);
      return Math.min(...days.filter((day) => day > prunedThrough));
    },
    /**
     * Where the last history of each learner ended who was erased in the last days, in their order; null for others.
     * Older rows are no longer the learner's: most are about to be deleted.
     */
    endOfHistory: async (
      partition: number,
      learners: readonly { tenant: string; userId: string }[],
    ): Promise<(OutboxId | null)[]> => {
      const hashes = learners.map(({ tenant, userId }) => learnerHash(tenant, userId));
      const ended = await findErased(client, partition, hashes);
      return ended.map((one) => one?.below ?? null);
    },
    /** Redis' clock. The id changes when a server restarts: what was read before and after does not fit together. */
    epoch: () => serve(epochOf(client)),
    /** Forgets the counts of the days up to this one: they are no longer compared. */
    prune: async (partition: number, throughDay: number): Promise<void> => {
      await serve(pruneAccepted(client, acceptedKey(partition), removedKey(partition), throughDay));
    },
    /** Keeps the result where all processes find it. */
    keep: async (record: AuditRecord): Promise<void> => {
      await serve(client.set(auditKey, JSON.stringify(record)));
    },
  };
}

/** The last audit's result; null where there was none yet. */
export async function lastAudit(client: RedisClient): Promise<AuditRecord | null> {
  const kept = await whileRedisServes(client.get(auditKey));
  return kept === null ? null : (JSON.parse(kept) as AuditRecord);
}

export type PartitionLook = Awaited<ReturnType<typeof lookAt>>;

/**
 * Looks at a partition while answers arrive. Each answer that was accepted up to one moment is in exactly one place: below
 * the frontier and stored, in the outbox (`waiting`), or parked. Answers that were `removed`, erased or retracted, stay
 * counted as `accepted`; days up to `prunedThrough` are no longer counted (-1: all are).
 */
async function lookAt(client: RedisClient, partition: number, signal: AbortSignal) {
  for (let tries = 0; tries < maxTries; tries++) {
    const before = await factsOf(client, partition);
    const waiting = await countStream(client, outboxKey(partition), before.last, signal);
    const parked = await countStream(client, parkedKey(outboxKey(partition)), '+', signal);
    const after = await factsOf(client, partition);
    // A row that was parked or redriven meanwhile may have been counted twice, or not at all.
    if (after.parkedMark !== before.parkedMark) continue;
    // A stream that is not there yet gives its first entry an id of this millisecond or later.
    const absent = { ms: before.now - 1, seq: Number.MAX_SAFE_INTEGER - 1 };
    /** Id of the newest row that `accepted` counts. */
    const last = before.last === '' ? absent : lastRowOf(before.last);
    /** Oldest id in the outbox. Rows below have left it: they were stored or parked. */
    const frontier = waiting.oldest === '' ? { ...last, seq: last.seq + 1 } : firstRowOf(waiting.oldest);
    const { accepted, removed, prunedThrough } = before;
    // An erasure may have left the outbox before it was met there.
    const hasCorrections = waiting.corrections + before.due + after.due > 0;
    return { partition, accepted, removed, prunedThrough, waiting, parked, frontier, last, hasCorrections };
  }
  throw new Error(`rows of partition ${partition} keep being parked or redriven`);
}

/**
 * The counts of a partition and where its streams end, all of one moment.
 * KEYS: hash of accepted, hash of removed, outbox, parked rows, due erasures.
 */
const lookAtPartition = defineScript(5)<
  [accepted: string, removed: string, outbox: string, parked: string, due: string],
  [string[], string[], string, string, number, [seconds: string, micros: string]]
>(`
local function lastId(key)
  if redis.call('EXISTS', key) == 0 then return '' end
  local info = redis.call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do if info[i] == 'last-generated-id' then return info[i + 1] end end
end
return {
  redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), lastId(KEYS[3]),
  lastId(KEYS[4]) .. ' ' .. redis.call('XLEN', KEYS[4]), redis.call('XLEN', KEYS[5]), redis.call('TIME'),
}
`);

async function factsOf(client: RedisClient, partition: number) {
  const outbox = outboxKey(partition);
  const counted = [acceptedKey(partition), removedKey(partition)] as const;
  const [counts, removed, last, parkedMark, due, [seconds, micros]] = await whileRedisServes(
    lookAtPartition(client, ...counted, outbox, parkedKey(outbox), dueKey(partition)),
  );
  const accepted = tallyOf(counts);
  const prunedThrough = accepted.get(prunedField) ?? -1;
  accepted.delete(prunedField);
  const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  return { accepted, removed: tallyOf(removed), prunedThrough, last, parkedMark, due, now };
}

function tallyOf(flat: readonly string[]): Map<string, number> {
  const tally = new Map<string, number>();
  for (let i = 0; i < flat.length; i += 2) tally.set(flat[i] as string, Number(flat[i + 1]));
  return tally;
}

/** Field that says up to which day the counts of a partition were forgotten. No tenant is empty. */
const prunedField = ':pruned';

/**
 * Forgets the counts of old days, and notes up to which day where there were any. One step: an audit in between would find
 * what is stored of these days to be too much.
 * KEYS: hash of accepted, hash of removed. ARGV: last day that is forgotten.
 */
const pruneAccepted = defineScript(2)<[accepted: string, removed: string, throughDay: number], null>(`
local through, forgotten = tonumber(ARGV[1]), 0
for _, key in ipairs(KEYS) do
  for _, name in ipairs(redis.call('HKEYS', key)) do
    local day = tonumber(string.match(name, '^.+:(%d+)$'))
    if day and day <= through then forgotten = forgotten + redis.call('HDEL', key, name) end
  end
end
local before = tonumber(redis.call('HGET', KEYS[1], '${prunedField}') or -1)
if forgotten > 0 and before < through then redis.call('HSET', KEYS[1], '${prunedField}', through) end
`);

interface StreamCounts {
  /** The oldest entry that was counted; empty where there was none. */
  oldest: string;
  /** Erasures and retractions among the entries. */
  corrections: number;
  /** Rows whose tenant and day cannot be read. */
  unreadable: number;
  /** Rows by day of arrival. */
  readonly arrived: Map<string, number>;
  /** Rows, and the right ones among them, by day of occurred_at. */
  readonly attempts: Map<string, number>;
  readonly correct: Map<string, number>;
}

/** An entry has up to 512 rows of about 350 bytes. */
const pageEntries = 50;

/** Counts a stream from its newer end: what leaves at the older end meanwhile was stored before. */
async function countStream(
  client: RedisClient,
  key: string,
  newest: string,
  signal: AbortSignal,
): Promise<StreamCounts> {
  const sums = { arrived: new Map(), attempts: new Map(), correct: new Map() };
  const counts: StreamCounts = { oldest: '', corrections: 0, unreadable: 0, ...sums };
  for (let from = newest; from !== ''; ) {
    signal.throwIfAborted();
    const page = await whileRedisServes(client.xrevrange(key, from, '-', 'COUNT', pageEntries));
    for (const [, fields] of page) countEntry(counts, fields);
    counts.oldest = page.at(-1)?.[0] ?? counts.oldest;
    from = page.length < pageEntries ? '' : `(${counts.oldest}`;
  }
  return counts;
}

function countEntry(counts: StreamCounts, fields: readonly string[]): void {
  if (fieldOf(fields, 'c') !== null) counts.corrections++;
  else for (const row of (fieldOf(fields, 'r') ?? '').split('\n')) countRow(counts, row);
}

const places = (['tenant', 'is_correct', 'occurred_at', 'received_at'] as const).map((name) =>
  rowColumns.indexOf(name),
);

function countRow(counts: StreamCounts, row: string): void {
  const fields = row.split('\t', Math.max(...places) + 1);
  const [tenant = '', correct, occurredAt = '', receivedAt = ''] = places.map((place) => fields[place]);
  const [occurred, arrived] = [dayOf(occurredAt), dayOf(receivedAt)];
  if (Number.isNaN(occurred + arrived)) {
    counts.unreadable++;
    return;
  }
  addOne(counts.arrived, tenantDay(tenant, arrived));
  addOne(counts.attempts, tenantDay(tenant, occurred));
  if (correct === '1') addOne(counts.correct, tenantDay(tenant, occurred));
}

/** @param seconds Unix time as text. @returns NaN for what is no time */
const dayOf = (seconds: string): number =>
  seconds === '' ? Number.NaN : Math.floor(Number(seconds) / 86_400);

function addOne(tally: Map<string, number>, name: string): void {
  tally.set(name, (tally.get(name) ?? 0) + 1);
}
