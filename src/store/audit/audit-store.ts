/** What the audit reads of Redis. Partitions are looked at one by one, in steps of about a millisecond each. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { learnerHash } from '../../contracts/learner-name.js';
import { firstRowOf, lastRowOf } from '../../contracts/outbox-ids.js';
import { readTenantDay } from '../../contracts/tenant-day.js';
import type { AuditRecord, AuditStore, PartitionLook } from '../../services/audit/ports.js';
import { findEnded } from '../corrections/ended-histories.js';
import { epochOf } from '../outbox/outbox.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { acceptedKey, auditKey, dueKey, outboxKey, parkedKey, removedKey } from '../redis/keys.js';
import { countStreamPage, lookAtPartition, pruneAccepted, prunedField } from './audit-scripts.js';

const parkedOf = (partition: number): string => parkedKey(outboxKey(partition));
/** Entries of a script call: about a millisecond of Redis where a commit has three rows in a partition. */
const pageEntries = 100;
/** Parked rows are put back or put aside by hand or one by one: this often in a row is not met. */
const maxTries = 20;

export function createAuditStore(client: RedisClient, partitions: number): AuditStore {
  const serve = whileRedisServes;

  async function look(partition: number, signal: AbortSignal): Promise<PartitionLook> {
    for (let tries = 0; tries < maxTries; tries++) {
      const facts = await factsOf(client, partition);
      const waiting = await countStream(client, outboxKey(partition), facts.last, signal);
      const parked = await countStream(client, parkedOf(partition), '+', signal);
      // A row that was parked or put back meanwhile may have been seen twice, or not at all.
      const after = await factsOf(client, partition);
      // An erasure may have left the outbox before it was met there.
      const due = facts.due + after.due;
      if (after.parkedMark === facts.parkedMark) return lookOf(partition, { ...facts, due }, waiting, parked);
    }
    throw new Error(`rows of partition ${partition} keep being parked or put back`);
  }

  return {
    partitions,
    look,
    endOfHistory: async (partition, learners) => {
      const hashes = learners.map(({ tenant, userId }) => learnerHash(tenant, userId));
      const ended = await findEnded(client, partition, hashes);
      return ended.map((one) => one?.below ?? null);
    },
    oldestDay: async (partition) => {
      const { accepted, prunedThrough } = await factsOf(client, partition);
      const days = [...accepted.keys()].map((name) => readTenantDay(name).day);
      return Math.min(...days.filter((day) => day > prunedThrough));
    },
    epoch: async () => (await serve(epochOf(client))).id,
    now: async () => (await serve(epochOf(client))).ms,
    prune: async (partition, throughDay) => {
      await serve(pruneAccepted(client, acceptedKey(partition), removedKey(partition), throughDay));
    },
    keep: async (record) => {
      await serve(client.set(auditKey, JSON.stringify(record)));
    },
  };
}

/** The last audit's result; null where there was none yet. */
export async function lastAudit(client: RedisClient): Promise<AuditRecord | null> {
  const kept = await whileRedisServes(client.get(auditKey));
  return kept === null ? null : (JSON.parse(kept) as AuditRecord);
}

interface Facts {
  readonly accepted: Map<string, number>;
  readonly removed: Map<string, number>;
  readonly prunedThrough: number;
  /** Newest id of the outbox, empty where there is none. */
  readonly last: string;
  readonly parkedMark: string;
  /** Erasures that are due. */
  readonly due: number;
  /** Unix milliseconds. */
  readonly now: number;
}

async function factsOf(client: RedisClient, partition: number): Promise<Facts> {
  const keys = [acceptedKey, removedKey, outboxKey, parkedOf, dueKey].map((key) => key(partition));
  const [accepted, removed, last, parkedMark, due, seconds, micros] = await whileRedisServes(
    lookAtPartition(client, ...(keys as [string, string, string, string, string])),
  );
  const counts = tallyOf(accepted);
  const prunedThrough = counts.get(prunedField) ?? -1;
  counts.delete(prunedField);
  const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  return { accepted: counts, removed: tallyOf(removed), prunedThrough, last, parkedMark, due, now };
}

/** What a stream holds, counted from its newer end: what leaves at the other meanwhile was stored before. */
interface StreamCounts {
  /** The oldest entry that was counted; empty where there was none. */
  oldest: string;
  corrections: number;
  unreadable: number;
  readonly arrived: Map<string, number>;
  readonly occurred: Map<string, number>;
  readonly right: Map<string, number>;
}

async function countStream(
  client: RedisClient,
  key: string,
  newest: string,
  signal: AbortSignal,
): Promise<StreamCounts> {
  const sums = { arrived: new Map(), occurred: new Map(), right: new Map() };
  const counts: StreamCounts = { oldest: '', corrections: 0, unreadable: 0, ...sums };
  for (let from = newest; from !== ''; ) {
    signal.throwIfAborted();
    const [entries, oldest, corrections, unreadable, ...pages] = await whileRedisServes(
      countStreamPage(client, key, from, pageEntries),
    );
    if (entries === 0) break;
    counts.oldest = oldest;
    counts.corrections += corrections;
    counts.unreadable += unreadable;
    [counts.arrived, counts.occurred, counts.right].forEach((sum, i) => {
      addTo(sum, pages[i] ?? []);
    });
    from = `(${oldest}`;
    await nextTurn();
  }
  return counts;
}

function addTo(sums: Map<string, number>, flat: readonly (string | number)[]): void {
  for (const [name, n] of tallyOf(flat)) sums.set(name, (sums.get(name) ?? 0) + n);
}

function tallyOf(flat: readonly (string | number)[]): Map<string, number> {
  const tally = new Map<string, number>();
  for (let i = 0; i < flat.length; i += 2) tally.set(`${flat[i]}`, Number(flat[i + 1]));
  return tally;
}

function lookOf(
  partition: number,
  { accepted, removed, prunedThrough, last, due, now }: Facts,
  waiting: StreamCounts,
  parked: StreamCounts,
): PartitionLook {
  // A stream that is not there yet gives its first entry an id of this millisecond or later.
  const newest = last === '' ? { ms: now - 1, seq: Number.MAX_SAFE_INTEGER - 1 } : lastRowOf(last);
  return {
    partition,
    accepted,
    removed,
    prunedThrough,
    waiting: waiting.arrived,
    parked: parked.arrived,
    waitingSums: { attempts: waiting.occurred, correct: waiting.right },
    unreadable: waiting.unreadable + parked.unreadable,
    frontier: waiting.oldest === '' ? { ...newest, seq: newest.seq + 1 } : firstRowOf(waiting.oldest),
    last: newest,
    hasCorrections: waiting.corrections + due > 0,
  };
}
