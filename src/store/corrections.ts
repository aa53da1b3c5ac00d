/** Corrections in Redis, for the drain that carries them out. */
import { rowColumns } from '../contracts/attempt-row.js';
import { unescapeText } from '../contracts/attempt-row-reader.js';
import type { CorrectedRows, CorrectionStore, Removal, TakenId } from '../services/correction-ports.js';
import { type RedisClient, whileRedisServes } from './client.js';
import { hashEventId } from './event-ids.js';
import { acceptedField, outboxKey, parkedKey, partitionPrefix } from './keys.js';

/** Ids of one script call, and parked rows of one read: nobody waits long behind one. */
const chunk = 500;

export function createCorrectionStore(client: RedisClient): CorrectionStore {
  return {
    plan: async ({ partition, id, text }, removal) => {
      const kept = removal === null ? '' : JSON.stringify(removal);
      const call = client.planCorrection(partitionPrefix(partition), id, text, kept);
      const [found = '', ageMs = 0] = await whileRedisServes(call);
      return found === '' ? null : { removal: JSON.parse(found) as Removal, ageMs };
    },
    forgetIds: async ({ partition, tenant, userId }, ids) => {
      let forgotten = 0;
      for (let at = 0; at < ids.length; at += chunk) {
        const part = ids.slice(at, at + chunk);
        const args = part.flatMap(({ eventId, second }) => [hashEventId(tenant, userId, eventId), second]);
        forgotten += await whileRedisServes(client.forgetIds(partitionPrefix(partition), ...args));
      }
      return forgotten;
    },
    removeParked: (rows, count) => removeParked(client, rows, count),
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

/** Page by page through all that is parked in the partition: seldom anything. */
async function removeParked(client: RedisClient, rows: CorrectedRows, count: boolean): Promise<TakenId[]> {
  const ids: TakenId[] = [];
  for (let start = '-'; ; ) {
    const page = await whileRedisServes(
      client.xrange(parkedKey(outboxKey(rows.partition)), start, '+', 'COUNT', chunk),
    );
    const found = page.flatMap(([id, fields]) => corrected(rows, id, fields) ?? []);
    if (found.length > 0) {
      await takeParked(client, rows.partition, found, count);
    }
    ids.push(...found.filter(({ eventId }) => eventId !== ''));
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
function corrected(rows: CorrectedRows, id: string, fields: readonly string[]): ParkedRow | null {
  const row = readParked(id, fields);
  const isMeant = row.tenant === rows.tenant && row.userId === rows.userId && row.learnerSeq >= rows.fromSeq;
  return isMeant && isBelow(row.outboxId, rows) ? row : null;
}

/** Whether a row came into the outbox before the correction. */
export function isBelow(
  outboxId: string,
  { belowMs, belowSeq }: Pick<CorrectedRows, 'belowMs' | 'belowSeq'>,
): boolean {
  const [ms = 0, seq = 0] = outboxId.split('-').map(Number);
  return ms < belowMs || (ms === belowMs && seq < belowSeq);
}
