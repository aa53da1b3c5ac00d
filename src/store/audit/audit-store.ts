/** Reads one partition at a time, in steps of at most a millisecond. */
import { attemptColumns, countFurtherSkills } from '../../contracts/answers/attempt-row.js';
import { hashLearner } from '../../contracts/learners/learner-name.js';
import { toFirstRowId, toLastRowId } from '../../contracts/outbox/outbox-ids.js';
import { parseTenantDay, tenantDay } from '../../contracts/schema/tenant-day.js';
import { parseDay } from '../../domain/base/calendar.js';
import { toUtcDay } from '../../domain/base/common.js';
import { indices, splitIntoParts } from '../../lists.js';
import { findErasedLearners } from '../corrections/erased-learners.js';
import { lastIdLua, readEpoch } from '../outbox/outbox.js';
import { findField } from '../redis/commands/bulk-operations.js';
import { defineScript, nowLua } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import {
  acceptedCountsKey,
  auditKey,
  dueErasuresKey,
  outboxKey,
  parkedKey,
  removedCountsKey,
} from '../redis/keys.js';

export interface AuditRecord {
  /** End of the audit, Unix milliseconds. */
  readonly at: number;
  readonly seconds: number;
  /** Counts by kind. */
  readonly mismatches: Readonly<Record<string, number>>;
  readonly notCompared: number;
  readonly report?: object;
}

export type AuditStore = ReturnType<typeof createAuditStore>;

export function createAuditStore(client: RedisClient, partitions: number) {
  return {
    partitions: indices(partitions),
    readPartition: (partition: number, signal: AbortSignal) => readPartition(client, partition, signal),
    /** Infinity without accepted answers. */
    findOldestDay: async (partition: number): Promise<number> => {
      const { counts, prunedThrough } = await readCounters(client, partition);
      const days = [...counts.keys()].map((name) => parseTenantDay(name).day);
      return Math.min(...days.filter((day) => day > prunedThrough));
    },
    /** Null for learners without an erasure. Rows below the id are being deleted. */
    findHistoryEnds: async (partition: number, tenant: string, userIds: readonly string[]) => {
      const learners = userIds.map((userId) => ({ partition, hash: hashLearner(tenant, userId) }));
      return (await findErasedLearners(client, learners)).map((one) => one?.below ?? null);
    },
    /** Changes when a server restarts: reads before and after are not comparable. */
    fetchEpoch: () => readEpoch(client),
    prune: (partition: number, throughDay: number): Promise<unknown> =>
      pruneCountsScript(client, acceptedCountsKey(partition), removedCountsKey(partition), throughDay),
    save: (record: AuditRecord): Promise<unknown> =>
      mapRedisErrors(client.set(auditKey, JSON.stringify(record))),
  };
}

export async function loadLastAudit(client: RedisClient): Promise<AuditRecord | null> {
  const stored = await mapRedisErrors(client.get(auditKey));
  return stored === null ? null : (JSON.parse(stored) as AuditRecord);
}

/**
 * Per tenant and day of arrival. Others: pending answers per day of occurred_at; `attempts` and `correct` count an
 * answer under each of its skills.
 */
export const emptyCounts = {
  ...{ accepted: 0, removed: 0, waiting: 0, parked: 0 },
  ...{ answers: 0, attempts: 0, correct: 0 },
};
type Counts = typeof emptyCounts;
/** By `TENANT:DAY`. */
type DayCounts = Map<string, Counts>;

function addCount(counts: DayCounts, name: string, column: keyof Counts, n = 1): void {
  const own = counts.get(name) ?? { ...emptyCounts };
  own[column] += n;
  counts.set(name, own);
}

export type PartitionSnapshot = Awaited<ReturnType<typeof readPartition>>;

/**
 * Each accepted answer is in exactly one place: stored (below `frontier`), in the outbox (`waiting`) or
 * parked. Erased and retracted answers (`removed`) stay `accepted`. Days up to `prunedThrough` have no
 * counts. A row that is parked or redriven during the read may be counted twice or not at all; `parkedMark`
 * then differs in the next read.
 */
async function readPartition(client: RedisClient, partition: number, signal: AbortSignal) {
  const outbox = outboxKey(partition);
  const { last, due, now, ...facts } = await readCounters(client, partition);
  const { counts } = facts;
  const waiting = await scanRows(client, outbox, last, signal, (row) => {
    addCount(counts, tenantDay(row.tenant, row.arrived), 'waiting');
    const day = tenantDay(row.tenant, row.occurred);
    addCount(counts, day, 'answers');
    addCount(counts, day, 'attempts', row.skills);
    if (row.isCorrect) addCount(counts, day, 'correct', row.skills);
  });
  const parked = await scanRows(client, parkedKey(outbox), '+', signal, (row) =>
    addCount(counts, tenantDay(row.tenant, row.arrived), 'parked'),
  );
  // The first entry of a missing stream gets an id of this millisecond or later.
  const missingStream = { ms: now - 1, seq: Number.MAX_SAFE_INTEGER - 1 };
  const newest = last === '' ? missingStream : toLastRowId(last);
  return {
    ...facts,
    partition,
    unreadable: waiting.unreadable + parked.unreadable,
    /** Newest row that `accepted` counts. */
    last: newest,
    /** Rows with lower ids were stored or parked. */
    frontier: waiting.oldest === '' ? { ...newest, seq: newest.seq + 1 } : toFirstRowId(waiting.oldest),
    hasCorrections: waiting.corrections + due > 0,
  };
}

const readCountersScript = defineScript(5)<
  [accepted: string, removed: string, outbox: string, parked: string, due: string],
  [accepted: string[], removed: string[], last: string, parkedMark: string, due: number, now: string]
>(`
${nowLua}
${lastIdLua}
return {
  redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), lastId(KEYS[3]),
  lastId(KEYS[4]) .. ' ' .. redis.call('XLEN', KEYS[4]), redis.call('XLEN', KEYS[5]), now(),
}
`);

async function readCounters(client: RedisClient, partition: number) {
  const outbox = outboxKey(partition);
  const keys = [
    acceptedCountsKey(partition),
    removedCountsKey(partition),
    outbox,
    parkedKey(outbox),
  ] as const;
  const [accepted, removed, last, parkedMark, due, now] = await readCountersScript(
    client,
    ...keys,
    dueErasuresKey(partition),
  );
  const counts: DayCounts = new Map();
  let [prunedThrough, totalRemoved] = [-1, 0];
  for (const [name, n] of parsePairs(accepted))
    if (name === prunedField) prunedThrough = n;
    else addCount(counts, name, 'accepted', n);
  for (const [name, n] of parsePairs(removed)) {
    addCount(counts, name, 'removed', n);
    totalRemoved += n;
  }
  return { counts, prunedThrough, removedInAll: totalRemoved, last, parkedMark, due, now: Number(now) };
}

const parsePairs = (flat: readonly string[]): [string, number][] =>
  splitIntoParts(flat, 2).map(([name, n]) => [name as string, Number(n)]);

/** Not a count: tenant names are never empty. */
const prunedField = ':pruned';

/** Prunes both in one step: in between, an audit would find a surplus. */
const pruneCountsScript = defineScript(2)<[accepted: string, removed: string, throughDay: number], null>(`
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

/** An entry has up to 512 rows of about 350 bytes. */
const entriesPerPage = 50;

/** Newest first: entries that disappear at the older end are already stored. */
async function scanRows(
  client: RedisClient,
  key: string,
  newest: string,
  signal: AbortSignal,
  onRow: (row: NonNullable<ReturnType<typeof parseRow>>) => void,
) {
  const summary = { oldest: '', corrections: 0, unreadable: 0 };
  for (let from = newest; from !== ''; ) {
    signal.throwIfAborted();
    const page = await mapRedisErrors(client.xrevrange(key, from, '-', 'COUNT', entriesPerPage));
    for (const [id, fields] of page) {
      summary.oldest = id;
      if (findField(fields, 'c') !== null) {
        summary.corrections++;
        continue;
      }
      for (const line of (findField(fields, 'r') ?? '').split('\n')) {
        const row = parseRow(line);
        if (row === null) summary.unreadable++;
        else onRow(row);
      }
    }
    from = page.length < entriesPerPage ? '' : `(${summary.oldest}`;
  }
  return summary;
}

const columnIndexes = (['tenant', 'is_correct', 'further_skills', 'received_at', 'local_date'] as const).map(
  (name) => attemptColumns.indexOf(name),
);

function parseRow(line: string) {
  const fields = line.split('\t', Math.max(...columnIndexes) + 1);
  const [tenant = '', correct, further = '', seconds, day = ''] = columnIndexes.map((at) => fields[at]);
  const arrived = seconds ? toUtcDay(1000 * Number(seconds)) : Number.NaN;
  const occurred = parseDay(day);
  if (Number.isNaN(occurred + arrived)) return null;
  const skills = 1 + countFurtherSkills(further);
  return { tenant, occurred, arrived, isCorrect: correct === '1', skills };
}
