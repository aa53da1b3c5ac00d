/** Dead-letter rows of outboxes and journals. */
import { attemptColumns, unescapeText } from '../../contracts/attempt-row.js';
import type { CorrectedRows } from '../../contracts/corrections.js';
import { plainName } from '../../contracts/ids.js';
import { journalColumns, journalKinds } from '../../contracts/journal.js';
import { hashLearner, learnerName } from '../../contracts/learner-name.js';
import { isBefore, parseOutboxId } from '../../contracts/outbox-ids.js';
import { groupByPartition, indices } from '../../lists.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import {
  acceptedField,
  forecastsKey,
  journalBound,
  journalKey,
  metaKey,
  outboxKey,
  parkedKey,
  partitionPrefix,
  sharedJournals,
} from '../redis/keys.js';
import { fieldOf, streamPages, type TextEntry } from '../redis/reads.js';
import { defineScript } from '../redis/script.js';
import { findErased } from './erased-learners.js';

/** Half of the default outbox limit, so that answers are still accepted after a redrive. */
const outboxRoom = 125_000;
const pageRows = 200;

/** Counts the rows as removed answers, unless a rewrite writes them again. */
export async function removeParked(client: RedisClient, rows: readonly CorrectedRows[]): Promise<void> {
  for (const [partition, own] of groupByPartition(rows)) {
    const byName = new Map(own.map((one) => [learnerName(one.tenant, one.userId), one]));
    for await (const page of streamPages(client, parkedKey(outboxKey(partition)))) {
      const meant = page.flatMap((entry) => {
        const row = readParked(entry);
        const one = byName.get(learnerName(row.tenant, row.userId));
        if (one === undefined || row.learnerSeq < one.fromSeq) return [];
        return isBefore(parseOutboxId(row.outboxId), one.below)
          ? [row.id, one.fromSeq === 0 ? row.field : '']
          : [];
      });
      await remove(client, partition, meant);
    }
  }
}

/** @param entries pairs of parked id and removed-answers field */
const remove = async (client: RedisClient, partition: number, entries: readonly string[]): Promise<number> =>
  entries.length === 0 ? 0 : removeEntries(client, partitionPrefix(partition), ...entries);

const removeEntries = defineScript(1)<[prefix: string, ...entries: string[]], number>(`
local removed = 0
for i = 1, #ARGV, 2 do
  if redis.call('XDEL', KEYS[1] .. ':out:parked', ARGV[i]) == 1 then
    if ARGV[i + 1] ~= '' then redis.call('HINCRBY', KEYS[1] .. ':removed', ARGV[i + 1], 1) end
    removed = removed + 1
  end
end
return removed
`);

type Column = (typeof attemptColumns)[number];
const column = (name: Column): number => attemptColumns.indexOf(name);

function readParked([id, fields]: TextEntry) {
  const values = (fieldOf(fields, 'r') ?? '').split('\t');
  const of = (name: Column): string => unescapeText(values[column(name)] ?? '');
  const day = Math.floor(Number(of('received_at')) / 86_400);
  return {
    ...{ id, outboxId: fieldOf(fields, 'id') ?? '', tenant: of('tenant'), userId: of('user_id') },
    learnerSeq: Number(of('learner_seq')),
    /** '' if the row is no accepted answer (countedRows in warehouse/schema/attempt-tables.ts). */
    field: Number(of('learner_version')) > 0 ? acceptedField(of('tenant'), day) : '',
  };
}

export type ParkedEntry = ReturnType<typeof parkedEntry>;
export type Redriven = ReturnType<typeof noneRedriven>;
export type ParkedRows = ReturnType<typeof createParkedRows>;

export const createParkedRows = (redis: RedisClient) => ({
  streams: async (partition: number | null): Promise<string[]> => {
    const partitions = Number((await whileRedisServes(redis.hget(metaKey, 'partitions'))) ?? 0);
    const wanted = indices(partitions).filter((one) => partition === null || one === partition);
    const streams = wanted.flatMap((one) => [outboxKey(one), journalKey(one), forecastsKey(one)]);
    return partition === null ? [...streams, ...sharedJournals] : streams;
  },
  /** @param after parked id in the first stream */
  entries: async function* (streams: readonly string[], after: string | null = null) {
    for (const [i, stream] of streams.entries()) {
      const from = i === 0 && after !== null ? `(${after}` : '-';
      for await (const page of streamPages(redis, parkedKey(stream), { from }))
        for (const entry of page) yield parkedEntry(stream, entry);
    }
  },
  redrive: async (streams: readonly string[]): Promise<Redriven> => {
    const total = noneRedriven();
    for (const stream of streams) await redrive(redis, stream, total);
    return total;
  },
});

/** `id`: in the original stream. `parkedAt`: Unix milliseconds. */
const parkedEntry = (stream: string, [parkedId, fields]: TextEntry) => ({
  parkedId,
  stream,
  id: fieldOf(fields, 'id') ?? '',
  tenant: tenantOf(fieldOf(fields, 'k'), fieldOf(fields, 'r')),
  reason: fieldOf(fields, 'reason') ?? '',
  parkedAt: Number.parseInt(parkedId, 10),
});

/** @param kind null: an answer */
function tenantOf(kind: string | null, row: string | null): string | null {
  const known = journalKinds.find((one) => one === kind);
  const columns: readonly string[] = known === undefined ? attemptColumns : journalColumns[known];
  const tenant = row?.split('\t')[columns.indexOf('tenant')];
  return tenant !== undefined && plainName.test(tenant) ? tenant : null;
}

/** `stayed`: stream full or correction pending. `erased`: deleted rows of erased learners. */
const noneRedriven = () => ({ moved: 0, stayed: 0, erased: 0 });

/** Stops at the row that was newest at the start: rows that are rejected again stay parked. */
export async function redrive(redis: RedisClient, stream: string, total = noneRedriven()): Promise<Redriven> {
  const parked = parkedKey(stream);
  const [newest] = await whileRedisServes(redis.xrevrange(parked, '+', '-', 'COUNT', 1));
  if (newest === undefined) return total;
  const room = stream.endsWith(':out') ? outboxRoom : journalBound;
  for await (const page of streamPages(redis, parked, { size: pageRows, to: newest[0] })) {
    total.erased += await removeErased(redis, stream, page);
    const searchedTo = await beforeCorrections(redis, stream);
    const ids = page.map(([id]) => id);
    const [moved, stayed] = await moveBack(redis, parked, stream, room, searchedTo, ...ids);
    total.moved += moved;
    total.stayed += stayed;
  }
  return total;
}

/** Outboxes only: the journal's drain removes erased journal rows. */
async function removeErased(redis: RedisClient, stream: string, page: readonly TextEntry[]): Promise<number> {
  const [, partition] = /^st:\{p(\d+)\}:out$/.exec(stream) ?? [];
  if (partition === undefined) return 0;
  const rows = page.map(readParked);
  const erased = await findErased(
    redis,
    rows.map(({ tenant, userId }) => ({ partition: Number(partition), hash: hashLearner(tenant, userId) })),
  );
  const over = rows.flatMap(({ id, outboxId, field }, i) => {
    const end = erased[i];
    return end && isBefore(parseOutboxId(outboxId), end.below) ? [id, field] : [];
  });
  return remove(redis, Number(partition), over);
}

/** @returns id of the first correction, else of the last entry */
async function beforeCorrections(redis: RedisClient, stream: string): Promise<string> {
  let last = '-';
  for await (const page of streamPages(redis, stream, { size: pageRows })) {
    const correction = page.find(([, [name]]) => name === 'c');
    if (correction !== undefined) return correction[0];
    last = page.at(-1)?.[0] ?? last;
  }
  return last;
}

/**
 * Moves no entry while a correction is pending: the correction would miss the rows. `searchedTo`: entries
 * before this id contain no correction.
 */
const moveBack = defineScript(2)<
  [parked: string, stream: string, bound: number, searchedTo: string, ...ids: string[]],
  [moved: number, stayed: number]
>(`
local room, moved, stay = tonumber(ARGV[1]) - redis.call('XLEN', KEYS[2]), 0, 0
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], ARGV[2], '+')) do
  if entry[2][1] == 'c' then room = 0 end
end
local prefix = string.match(KEYS[2], '^(.*):out$')
if prefix and redis.call('XLEN', prefix .. ':due') > 0 then room = 0 end
for i = 3, #ARGV do
  local id = ARGV[i]
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if entry and room <= 0 then
    stay = stay + 1
  elseif entry then
    local fields, parked = {}, entry[2]
    for j = 1, #parked, 2 do
      if parked[j] ~= 'id' and parked[j] ~= 'reason' then
        fields[#fields + 1], fields[#fields + 2] = parked[j], parked[j + 1]
      end
    end
    -- XADD rejects an entry without fields. Such an entry contains no data.
    if #fields > 0 then
      redis.call('XADD', KEYS[2], '*', unpack(fields))
      if prefix then redis.call('INCR', KEYS[2] .. ':rows') end
    end
    redis.call('XDEL', KEYS[1], id)
    room, moved = room - 1, moved + 1
  end
end
return { moved, stay }
`);
