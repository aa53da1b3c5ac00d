/** Corrections in Redis, for the drain that carries them out. */
import { rowColumns } from '../contracts/attempt-row.js';
import { unescapeText } from '../contracts/attempt-row-reader.js';
import { learnerName } from '../contracts/learner-name.js';
import type {
  CorrectedRows,
  CorrectionStore,
  DueErasure,
  KeptPlan,
  LearnersId,
  Removal,
  TakenId,
} from '../services/correction-ports.js';
import { type RedisClient, whileRedisServes } from './client.js';
import { hashEventId } from './event-ids.js';
import { acceptedField, outboxKey, parkedKey, partitionPrefix } from './keys.js';
import { readReplicated } from './replication.js';

/** Ids of one script call, and parked rows of one read: nobody waits long behind one. */
const chunk = 500;

export function createCorrectionStore(client: RedisClient): CorrectionStore {
  return {
    due: (partition, most) => readDue(client, partition, most),
    plan: async ({ partition, id, text }, removal) => {
      const kept = removal === null ? '' : JSON.stringify(removal);
      const call = client.planCorrection(partitionPrefix(partition), id, text, kept);
      const [found = '', ageMs = 0] = await whileRedisServes(call);
      return planOf(found, ageMs);
    },
    forgetIds: async (ids) => {
      let forgotten = 0;
      for (const partition of new Set(ids.map((id) => id.partition))) {
        const own = ids.filter((id) => id.partition === partition);
        for (let at = 0; at < own.length; at += chunk) {
          const args = own
            .slice(at, at + chunk)
            .flatMap(({ tenant, userId, eventId, second }) => [hashEventId(tenant, userId, eventId), second]);
          forgotten += await whileRedisServes(client.forgetIds(partitionPrefix(partition), ...args));
        }
      }
      return forgotten;
    },
    removeParked: async (rows, count) => {
      const removed: LearnersId[] = [];
      for (const partition of new Set(rows.map((one) => one.partition))) {
        const own = rows.filter((one) => one.partition === partition);
        removed.push(...(await removeParked(client, partition, own, count)));
      }
      return removed;
    },
    settle: async ({ partition, id, text }, correction, { answers, before }) => {
      const erasureId = correction.kind === 'erase' ? correction.erasureId : '';
      const removed = Object.entries(answers).flatMap(([day, n]) => [
        acceptedField(correction.tenant, Number(day)),
        n,
      ]);
      const told = JSON.stringify(before);
      const prefix = partitionPrefix(partition);
      await whileRedisServes(client.settleCorrection(prefix, id, text, erasureId, told, ...removed));
    },
  };
}

/** They are on the replicas where that is asked for: a failover must not forget what ClickHouse has obeyed. */
async function readDue(client: RedisClient, partition: number, most: number): Promise<DueErasure[]> {
  const prefix = partitionPrefix(partition);
  const read = () => whileRedisServes(client.readDue(prefix, most));
  const [head, ...found] = await readReplicated(client, prefix, read, ({ length }) => length > 1);
  const due: DueErasure[] = [];
  for (let i = 0; i < found.length; i += 4) {
    const [id, text, kept, ageMs] = found.slice(i, i + 4) as [string, string, string, number];
    const [belowMs, belowSeq] = id.split('-').map(Number) as [number, number];
    // A Redis that took over may have got back rows of before.
    if (head !== '' && isBelow(head, { belowMs, belowSeq })) break;
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
): Promise<LearnersId[]> {
  const byName = new Map(rows.map((one) => [learnerName(one.tenant, one.userId), one]));
  const ids: LearnersId[] = [];
  for (let start = '-'; ; ) {
    const page = await whileRedisServes(
      client.xrange(parkedKey(outboxKey(partition)), start, '+', 'COUNT', chunk),
    );
    const found = page.flatMap(([id, fields]) => corrected(byName, id, fields) ?? []);
    await takeParked(client, partition, found, count);
    ids.push(...found.filter(({ eventId }) => eventId !== '').map((row) => ({ ...row, partition })));
    const last = page.at(-1)?.[0];
    if (last === undefined || page.length < chunk) return ids;
    start = `(${last}`;
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
  return whileRedisServes(client.removeParked(partitionPrefix(partition), ...args));
}

/** A refused row, as far as it can be told. */
export interface ParkedRow extends TakenId {
  /** Of the parked entry, and what it had in the outbox. */
  readonly id: string;
  readonly outboxId: string;
  readonly tenant: string;
  readonly userId: string;
  readonly learnerSeq: number;
  /** UTC day of arrival, number since 1970. */
  readonly day: number;
  /** Whether it is among the accepted answers (warehouse/attempts.ts, countedRows). */
  readonly counted: boolean;
}

const column = Object.fromEntries(rowColumns.map((name, i) => [name, i])) as Record<string, number>;

export function readParked(id: string, fields: readonly string[]): ParkedRow {
  // Not as a row: what ClickHouse refused may be none.
  const values = (fields[fields.indexOf('r') + 1] ?? '').split('\t');
  const of = (name: string): string => unescapeText(values[column[name] as number] ?? '');
  const second = Math.floor(Number(of('received_at')));
  return {
    ...{ id, outboxId: fields[fields.indexOf('id') + 1] ?? '', tenant: of('tenant'), userId: of('user_id') },
    ...{ eventId: of('event_id'), learnerSeq: Number(of('learner_seq')) },
    ...{ second, day: Math.floor(second / 86_400), counted: Number(of('learner_version')) > 0 },
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
  return rows !== undefined && row.learnerSeq >= rows.fromSeq && isBelow(row.outboxId, rows) ? row : null;
}

/** Whether a row came into the outbox before the correction. */
export function isBelow(
  outboxId: string,
  { belowMs, belowSeq }: Pick<CorrectedRows, 'belowMs' | 'belowSeq'>,
): boolean {
  const [ms = 0, seq = 0] = outboxId.split('-').map(Number);
  return ms < belowMs || (ms === belowMs && seq < belowSeq);
}
