/** Corrections in Redis, for the drain that applies them: everything before them in the outbox is stored. */
import {
  type CorrectedRows,
  decodeCorrection,
  type PendingCorrection,
  type Removal,
  rowsOf,
} from '../../contracts/corrections.js';
import { learnerName } from '../../contracts/learner-name.js';
import { isBefore, parseId } from '../../contracts/outbox-ids.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { acceptedField, partitionPrefix } from '../redis/keys.js';
import { readReplicated } from '../redis/replication.js';
import { defineScript, nowLua } from '../redis/script.js';
import { maxOpenErasures } from './erasures.js';
import { removeParked } from './parked-rows.js';

/** An erasure that left the outbox, or a rewrite at its head. */
export interface DueCorrection extends PendingCorrection {
  readonly rows: CorrectedRows;
  /** Null: a rewrite. */
  readonly erasureId: string | null;
  /** What it removes, and for how many milliseconds Redis has that; null: its rows have to be counted first. */
  readonly plan: { readonly removal: Removal; readonly ageMs: number } | null;
}

export type PlannedCorrection = DueCorrection & { readonly plan: NonNullable<DueCorrection['plan']> };

export type CorrectionStore = ReturnType<typeof createCorrectionStore>;

/** Due erasures of a partition that are looked at: more than are applied at once. */
const dueAtOnce = 200;

/** Its functions throw ApiError UNAVAILABLE. */
export const createCorrectionStore = (client: RedisClient) => ({
  /**
   * The oldest erasures that are due, then the rewrite at the head of the outbox; the first of each learner: a second
   * erasure would count the rows of both, and a rewrite would remove rows that an erasure has counted.
   */
  due: async (partition: number): Promise<DueCorrection[]> => {
    const some = await dueIn(client, partition, dueAtOnce);
    // An erasure of the learner who is rewritten may be behind those.
    return firstOfLearners(some.length > dueAtOnce ? await dueIn(client, partition, maxOpenErasures) : some);
  },
  /** Keeps what an erasure removes, unless that is kept already: a repeat would not count what is deleted. */
  plan: ({ partition, id, text }: DueCorrection, removal: Removal): Promise<unknown> =>
    whileRedisServes(keepPlan(client, partitionPrefix(partition), id, text, JSON.stringify(removal))),
  removeParked: (rows: readonly CorrectedRows[]) => removeParked(client, rows),
  /** Counts what was removed, notes it in the erasure's record, and removes the correction: in one step, once. */
  settle: ({ partition, id, text, rows, erasureId, plan }: PlannedCorrection): Promise<unknown> => {
    const { answers, before } = plan.removal;
    const days = Object.entries(answers).map(([day, n]) => [acceptedField(rows.tenant, Number(day)), n]);
    const args = [id, text, erasureId ?? '', JSON.stringify(before)] as const;
    return whileRedisServes(settleCorrection(client, partitionPrefix(partition), ...args, ...days.flat()));
  },
});

async function dueIn(client: RedisClient, partition: number, atMost: number): Promise<DueCorrection[]> {
  const read = () => whileRedisServes(readDue(client, partitionPrefix(partition), atMost));
  // With REDIS_WAIT_REPLICAS, a failover must not forget what ClickHouse has applied.
  const isAny = ([, , rewrite, ...due]: readonly string[]) => rewrite !== '' || due.length > 0;
  const [now, head, rewrite, ...found] = await readReplicated(client, partition, read, isAny);
  const due: DueCorrection[] = [];
  for (let i = 0; i < found.length; i += 3) {
    const [id, text, plan] = found.slice(i, i + 3) as [string, string, string];
    // After a failover, Redis may have earlier rows again.
    if (head !== '' && isBefore(parseId(head), parseId(id))) break;
    due.push(dueOf({ partition, id, text }, plan, Number(now)));
  }
  if (rewrite !== '') due.push(dueOf({ partition, id: head, text: rewrite }, '', Number(now)));
  return due;
}

/** A rewrite is its own plan. */
function dueOf(pending: PendingCorrection, kept: string, now: number): DueCorrection {
  const correction = decodeCorrection(pending.text);
  const rows = rowsOf(pending, correction);
  if (correction.kind === 'rewrite') {
    // All rows but one are written again.
    const removal = { answers: { [correction.takenBackDay]: 1 }, before: {} };
    return { ...pending, rows, erasureId: null, plan: { removal, ageMs: now - parseId(pending.id).ms } };
  }
  const [, since, removal] = /^(\d+) (.*)$/.exec(kept) ?? [];
  const plan = removal === undefined ? null : { removal: JSON.parse(removal), ageMs: now - Number(since) };
  return { ...pending, rows, erasureId: correction.erasureId, plan };
}

function firstOfLearners(due: readonly DueCorrection[]): DueCorrection[] {
  const names = new Set<string>();
  return due.filter(({ rows }) => names.size < names.add(learnerName(rows.tenant, rows.userId)).size);
}

/**
 * `head`: id of the oldest entry of the outbox or ''; `atHead`: its text if it is a correction, else ''. `due`: id and text of
 * the oldest erasures, and the kept plan (Unix milliseconds, a space, the removal) or '', in turn.
 */
const readDue = defineScript(1)<
  [prefix: string, atMost: number],
  [now: string, head: string, atHead: string, ...due: string[]]
>(`
${nowLua}
local head = redis.call('XRANGE', KEYS[1] .. ':out', '-', '+', 'COUNT', 1)[1]
local found = { now(), head and head[1] or '', head and head[2][1] == 'c' and head[2][2] or '' }
for _, entry in ipairs(redis.call('XRANGE', KEYS[1] .. ':due', '-', '+', 'COUNT', ARGV[1])) do
  local plan = redis.call('HGET', KEYS[1] .. ':plans', entry[1]) or ''
  for _, value in ipairs({ entry[1], entry[2][2], plan }) do found[#found + 1] = value end
end
return found
`);

/** After a failover, the id of a correction may belong to another entry. */
const standsInLua = `
local function standsIn(stream, id, text)
  local entry = redis.call('XRANGE', stream, id, id)[1]
  return entry and entry[2][1] == 'c' and entry[2][2] == text
end
`;

const keepPlan = defineScript(1)<[prefix: string, id: string, text: string, removal: string], null>(`
${nowLua}
${standsInLua}
if not standsIn(KEYS[1] .. ':due', ARGV[1], ARGV[2]) then return end
redis.call('HSETNX', KEYS[1] .. ':plans', ARGV[1], now() .. ' ' .. ARGV[3])
`);

/**
 * Does nothing for a correction that was settled before. `erasureId`: '' for a rewrite. `removed`: fields of the removed
 * answers and by how much each grows, in turn.
 */
const settleCorrection = defineScript(1)<
  [
    ...[prefix: string, id: string, text: string, erasureId: string, before: string],
    ...removed: (string | number)[],
  ],
  null
>(`
${standsInLua}
local prefix, id, erasureId = KEYS[1], ARGV[1], ARGV[3]
local place = prefix .. (erasureId == '' and ':out' or ':due')
if not standsIn(place, id, ARGV[2]) then return end
redis.call('XDEL', place, id)
redis.call('HDEL', prefix .. ':plans', id)
for i = 5, #ARGV, 2 do redis.call('HINCRBY', prefix .. ':removed', ARGV[i], ARGV[i + 1]) end
local stored = erasureId ~= '' and redis.call('HGET', prefix .. ':erasures', erasureId)
if stored then
  local record = cjson.decode(stored)
  record.before = cjson.decode(ARGV[4])
  redis.call('HSET', prefix .. ':erasures', erasureId, cjson.encode(record))
end
`);
