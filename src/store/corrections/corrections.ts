/** Corrections in Redis, for the drain that carries them out. */

import { rowColumns } from '../../contracts/attempt-row.js';
import { unescapeText } from '../../contracts/attempt-row-reader.js';
import { learnerName } from '../../contracts/learner-name.js';
import { isBefore, parseId } from '../../contracts/outbox-ids.js';
import { byPartition } from '../../lists.js';
import type {
  CorrectedRows,
  CorrectionStore,
  DueErasure,
  KeptPlan,
  Removal,
} from '../../services/corrections/correction-ports.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { acceptedField, outboxKey, parkedKey, partitionPrefix } from '../redis/keys.js';
import { readReplicated } from '../redis/replication.js';
import { fieldOf, streamPages } from '../redis/streams.js';
import {
  planCorrection,
  readDueEntries,
  removeParkedEntries,
  settleCorrection,
} from './correction-scripts.js';

/** Parked rows of one read: nobody waits long behind it. */
const chunk = 500;

export function createCorrectionStore(client: RedisClient): CorrectionStore {
  return {
    due: (partition, most) => readDue(client, partition, most),
    plan: async ({ partition, id, text }, removal) => {
      const kept = removal === null ? '' : JSON.stringify(removal);
      const call = planCorrection(client, partitionPrefix(partition), id, text, kept);
      const [found = '', ageMs = 0] = await whileRedisServes(call);
      return planOf(found, ageMs);
    },
    removeParked: async (rows, count) => {
      for (const [partition, own] of byPartition(rows)) await removeParked(client, partition, own, count);
    },
    settle: async ({ partition, id, text }, correction, { answers, before }) => {
      const erasureId = correction.kind === 'erase' ? correction.erasureId : '';
      const removed = Object.entries(answers).flatMap(([day, n]) => [
        acceptedField(correction.tenant, Number(day)),
        n,
      ]);
      const told = JSON.stringify(before);
      const prefix = partitionPrefix(partition);
      await whileRedisServes(settleCorrection(client, prefix, id, text, erasureId, told, ...removed));
    },
  };
}

/** They are on the replicas where that is asked for: a failover must not forget what ClickHouse has obeyed. */
async function readDue(client: RedisClient, partition: number, most: number): Promise<DueErasure[]> {
  const prefix = partitionPrefix(partition);
  const read = () => whileRedisServes(readDueEntries(client, prefix, most));
  const [head, ...found] = await readReplicated(client, partition, read, ({ length }) => length > 1);
  const due: DueErasure[] = [];
  for (let i = 0; i < found.length; i += 4) {
    const [id, text, kept, ageMs] = found.slice(i, i + 4) as [string, string, string, number];
    // A Redis that took over may have got back rows of before.
    if (head !== '' && isBefore(parseId(head), parseId(id))) break;
    due.push({ pending: { partition, id, text }, plan: planOf(kept, ageMs) });
  }
  return due;
}

const planOf = (kept: string, ageMs: number): KeptPlan | null =>
  kept === '' ? null : { removal: JSON.parse(kept) as Removal, ageMs };

/** Page by page through all that is parked in the partition: seldom anything. */
async function removeParked(
  client: RedisClient,
  partition: number,
  rows: readonly CorrectedRows[],
  count: boolean,
): Promise<void> {
  const byName = new Map(rows.map((one) => [learnerName(one.tenant, one.userId), one]));
  const parked = parkedKey(outboxKey(partition));
  const read = (from: string, size: number) =>
    whileRedisServes(client.xrange(parked, from, '+', 'COUNT', size));
  for await (const page of streamPages(chunk, read)) {
    const found = page.flatMap(([id, fields]) => corrected(byName, id, fields) ?? []);
    await takeParked(client, partition, found, count);
  }
}

/** Takes refused rows away. @param count whether they are answers that are gone for good. @returns how many */
export async function takeParked(
  client: RedisClient,
  partition: number,
  rows: readonly ParkedRow[],
  count: boolean,
): Promise<number> {
  if (rows.length === 0) return 0;
  const args = rows.flatMap(({ id, tenant, day, counted }) => [
    id,
    count && counted ? acceptedField(tenant, day) : '',
  ]);
  return whileRedisServes(removeParkedEntries(client, partitionPrefix(partition), ...args));
}

/** A refused row, as far as it can be told. */
export interface ParkedRow {
  /** Of the parked entry, and what it had in the outbox. */
  readonly id: string;
  readonly outboxId: string;
  readonly tenant: string;
  readonly userId: string;
  readonly learnerSeq: number;
  /** UTC day of arrival, number since 1970. */
  readonly day: number;
  /** Whether it is among the accepted answers (warehouse/schema/attempts.ts, countedRows). */
  readonly counted: boolean;
}

const column = Object.fromEntries(rowColumns.map((name, i) => [name, i])) as Record<string, number>;

export function readParked(id: string, fields: readonly string[]): ParkedRow {
  // Not as a row: what ClickHouse refused may be none.
  const values = (fieldOf(fields, 'r') ?? '').split('\t');
  const of = (name: string): string => unescapeText(values[column[name] as number] ?? '');
  return {
    ...{ id, outboxId: fieldOf(fields, 'id') ?? '', tenant: of('tenant'), userId: of('user_id') },
    ...{ learnerSeq: Number(of('learner_seq')), counted: Number(of('learner_version')) > 0 },
    day: Math.floor(Number(of('received_at')) / 86_400),
  };
}

/** Null for a row that is not meant, or that cannot be told whose it is. */
function corrected(
  byName: ReadonlyMap<string, CorrectedRows>,
  id: string,
  fields: readonly string[],
): ParkedRow | null {
  const row = readParked(id, fields);
  const rows = byName.get(learnerName(row.tenant, row.userId));
  if (rows === undefined || row.learnerSeq < rows.fromSeq) return null;
  return isBefore(parseId(row.outboxId), rows.below) ? row : null;
}
