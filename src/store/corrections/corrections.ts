/** Corrections that the drain can apply, because ClickHouse has all earlier rows of the outbox. */
import {
  type CorrectedRows,
  decodeCorrection,
  type RemovalCounts,
} from '../../contracts/corrections/corrections.js';
import { learnerName } from '../../contracts/learners/learner-name.js';
import { isBefore, parseOutboxId, toFirstRowId } from '../../contracts/outbox/outbox-ids.js';
import { splitIntoParts } from '../../lists.js';
import { throwUnreadable, type UnreadableHandler } from '../redis/commands/bulk-operations.js';
import { defineScript, nowLua } from '../redis/commands/script.js';
import type { RedisClient } from '../redis/connection/client.js';
import { readReplicated } from '../redis/connection/replication.js';
import { acceptedField, partitionPrefix } from '../redis/keys.js';
import { decodeErasure, maxOpenErasures } from './erasures.js';
import { removeParkedRows } from './redrive.js';
import { rewritesPerStatement } from './rewrites.js';

/** An erasure, or a rewrite at the head of the outbox. */
export interface DueCorrection {
  readonly id: string;
  /** The rewrite as JSON, or the erasure's id. */
  readonly text: string;
  readonly rows: CorrectedRows;
  /** Null until the rows are counted. `ageMs`: age of the count in Redis. */
  readonly plan: { readonly removal: RemovalCounts; readonly ageMs: number } | null;
}

export type PlannedCorrection = DueCorrection & { readonly plan: NonNullable<DueCorrection['plan']> };

export type CorrectionStore = ReturnType<typeof createCorrectionStore>;

const duePageSize = 200;

/** @param onUnreadable receives skipped records, which stay due */
export const createCorrectionStore = (client: RedisClient, onUnreadable = throwUnreadable) => ({
  /**
   * Only the first correction per learner: a second erasure would count the rows of both, and a rewrite would
   * remove rows that an erasure has counted.
   */
  listDue: async (partition: number): Promise<DueCorrection[]> => {
    const read = (atMost: number) => listDueCorrections(client, partition, atMost, onUnreadable);
    const firstPage = await read(duePageSize);
    // An erasure of the same learner may be behind the first page.
    return selectFirstPerLearner(firstPage.length > duePageSize ? await read(maxOpenErasures) : firstPage);
  },
  /** Does not replace a plan: a repeated count would miss deleted rows. */
  storePlan: ({ rows: { partition }, id, text }: DueCorrection, removal: RemovalCounts): Promise<unknown> =>
    storePlanScript(client, partitionPrefix(partition), id, text, JSON.stringify(removal)),
  removeParkedRows: (rows: readonly CorrectedRows[]) => removeParkedRows(client, rows),
  /** Atomic and idempotent. */
  complete: (correction: PlannedCorrection): Promise<unknown> => {
    const { id, text, rows, plan } = correction;
    const { answers, before } = plan.removal;
    const days = Object.entries(answers).map(([day, n]) => [acceptedField(rows.tenant, Number(day)), n]);
    const place = isErasure(correction) ? 'due' : 'out';
    const args = [place, id, text, JSON.stringify(before)] as const;
    return completeCorrectionScript(client, partitionPrefix(rows.partition), ...args, ...days.flat());
  },
});

export const isErasure = ({ rows }: DueCorrection): boolean => rows.fromSeq === 0;

async function listDueCorrections(
  client: RedisClient,
  partition: number,
  atMost: number,
  onUnreadable: UnreadableHandler,
): Promise<(DueCorrection | null)[]> {
  const read = () => readDueScript(client, partitionPrefix(partition), atMost);
  // A failover must never lose corrections that ClickHouse has applied.
  const hasDue = ([, , , ...due]: readonly string[]) => due.length > 0;
  const [now, head, rewrites, ...found] = await readReplicated(client, partition, read, hasDue);
  const erasuresFrom = 2 * Number(rewrites);
  const due: (DueCorrection | null)[] = [];
  for (const [id = '', text = '', record = ''] of splitIntoParts(found.slice(erasuresFrom), 3)) {
    // After a failover, Redis may contain earlier rows again.
    if (head !== '' && isBefore(parseOutboxId(head), parseOutboxId(id))) break;
    try {
      const { rows, plan } = decodeErasure(text, partition, record);
      due.push({ id, text, rows, plan: plan && { ...plan, ageMs: Number(now) - plan.at } });
    } catch (error) {
      onUnreadable(error, text, record);
      due.push(null);
    }
  }
  for (const [id = '', text = ''] of splitIntoParts(found.slice(0, erasuresFrom), 2))
    due.push(toDueRewrite(partition, id, text, Number(now)));
  return due;
}

function toDueRewrite(partition: number, id: string, text: string, now: number): DueCorrection {
  const { tenant, userId, fromSeq, takenBackDay } = decodeCorrection(text);
  const keepsAnswers = takenBackDay === null;
  const rows = { tenant, userId, partition, below: toFirstRowId(id), fromSeq, goalAt: 0, keepsAnswers };
  // A retraction removes one answer. All other rows are written again.
  const removal = { answers: takenBackDay === null ? {} : { [takenBackDay]: 1 }, before: {} };
  return { id, text, rows, plan: { removal, ageMs: now - parseOutboxId(id).ms } };
}

function selectFirstPerLearner(due: readonly (DueCorrection | null)[]): DueCorrection[] {
  const names = new Set<string>();
  return due
    .filter((one) => one !== null)
    .filter(({ rows }) => names.size < names.add(learnerName(rows.tenant, rows.userId)).size);
}

/**
 * `head`: oldest outbox entry. `rewrites`: number of rewrites before the first row. `due`: outbox id and text of
 * each of these, then outbox id, erasure id and record of each erasure.
 */
const readDueScript = defineScript(1)<
  [prefix: string, atMost: number],
  [now: string, head: string, rewrites: string, ...due: string[]]
>(`
${nowLua}
local out = KEYS[1] .. ':out'
local head = redis.call('XRANGE', out, '-', '+', 'COUNT', 1)[1]
local found = { now(), head and head[1] or '', '0' }
local first = head and head[2][1] == 'c' and redis.call('XRANGE', out, '-', '+', 'COUNT', ${rewritesPerStatement}) or {}
for i, entry in ipairs(first) do
  if entry[2][1] ~= 'c' then break end
  found[3] = tostring(i)
  for _, value in ipairs({ entry[1], entry[2][2] }) do found[#found + 1] = value end
end
for _, entry in ipairs(redis.call('XRANGE', KEYS[1] .. ':due', '-', '+', 'COUNT', ARGV[1])) do
  local record = redis.call('HGET', KEYS[1] .. ':erasures', entry[2][2]) or 'null'
  for _, value in ipairs({ entry[1], entry[2][2], record }) do found[#found + 1] = value end
end
return found
`);

/** After a failover, another entry may have the id. */
const hasCorrectionLua = `
local function hasCorrection(stream, id, text)
  local entry = redis.call('XRANGE', stream, id, id)[1]
  return entry and entry[2][1] == 'c' and entry[2][2] == text
end
`;

const storePlanScript = defineScript(1)<
  [prefix: string, id: string, erasure: string, removal: string],
  null
>(`
${nowLua}
${hasCorrectionLua}
local erasures = KEYS[1] .. ':erasures'
local stored = redis.call('HGET', erasures, ARGV[2])
if not stored or not hasCorrection(KEYS[1] .. ':due', ARGV[1], ARGV[2]) then return end
local record = cjson.decode(stored)
if record.plan then return end
record.plan = { at = tonumber(now()), removal = cjson.decode(ARGV[3]) }
redis.call('HSET', erasures, ARGV[2], cjson.encode(record))
`);

/** `removed`: pairs of a field and its increment. */
const completeCorrectionScript = defineScript(1)<
  [
    ...[prefix: string, place: 'due' | 'out', id: string, text: string, before: string],
    ...removed: (string | number)[],
  ],
  null
>(`
${hasCorrectionLua}
local place, erasures = KEYS[1] .. ':' .. ARGV[1], KEYS[1] .. ':erasures'
if not hasCorrection(place, ARGV[2], ARGV[3]) then return end
redis.call('XDEL', place, ARGV[2])
for i = 5, #ARGV, 2 do redis.call('HINCRBY', KEYS[1] .. ':removed', ARGV[i], ARGV[i + 1]) end
local stored = ARGV[1] == 'due' and redis.call('HGET', erasures, ARGV[3])
if stored then
  local record = cjson.decode(stored)
  record.before, record.plan = cjson.decode(ARGV[4]), nil
  redis.call('HSET', erasures, ARGV[3], cjson.encode(record))
end
`);
