/** Dead-letter rows of outboxes and journals. */
import { attemptColumns, unescapeText } from '../../contracts/answers/attempt-row.js';
import type { CorrectedRows } from '../../contracts/corrections/corrections.js';
import { journalColumns, journalKinds } from '../../contracts/journal/journal.js';
import { hashLearner, learnerName } from '../../contracts/learners/learner-name.js';
import { isBefore, parseOutboxId } from '../../contracts/outbox/outbox-ids.js';
import { plainName } from '../../contracts/schema/ids.js';
import { groupByPartition, indices } from '../../lists.js';
import { findField, readStreamPages, type StreamEntry } from '../redis/commands/bulk-operations.js';
import { defineScript } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import {
  acceptedField,
  forecastsKey,
  journalKey,
  maxJournalEntries,
  metaKey,
  outboxKey,
  parkedKey,
  partitionPrefix,
  sharedJournalKeys,
} from '../redis/keys.js';
import { findErasedLearners } from './erased-learners.js';

/** Half of a partition's default outbox limit, so that answers are still accepted after a redrive. */
const maxOutboxEntries = 125_000;
const rowsPerPage = 200;

/** Counts the rows as removed answers, unless a rewrite writes them again. */
export async function removeParkedRows(client: RedisClient, rows: readonly CorrectedRows[]): Promise<void> {
  for (const [partition, own] of groupByPartition(rows)) {
    const byName = new Map(own.map((one) => [learnerName(one.tenant, one.userId), one]));
    for await (const page of readStreamPages(client, parkedKey(outboxKey(partition)))) {
      const entries = page.flatMap((entry) => {
        const row = parseParkedRow(entry);
        const one = byName.get(learnerName(row.tenant, row.userId));
        if (one === undefined || row.learnerSeq < one.fromSeq) return [];
        return isBefore(parseOutboxId(row.outboxId), one.below)
          ? [row.id, one.fromSeq === 0 ? row.removedField : '']
          : [];
      });
      await removeEntries(client, partition, entries);
    }
  }
}

/** @param entries pairs of parked id and removed-answers field */
const removeEntries = async (
  client: RedisClient,
  partition: number,
  entries: readonly string[],
): Promise<number> =>
  entries.length === 0 ? 0 : removeEntriesScript(client, partitionPrefix(partition), ...entries);

const removeEntriesScript = defineScript(1)<[prefix: string, ...entries: string[]], number>(`
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
const findColumn = (name: Column): number => attemptColumns.indexOf(name);

function parseParkedRow([id, fields]: StreamEntry) {
  const values = (findField(fields, 'r') ?? '').split('\t');
  const readColumn = (name: Column): string => unescapeText(values[findColumn(name)] ?? '');
  const day = Math.floor(Number(readColumn('received_at')) / 86_400);
  return {
    ...{
      id,
      outboxId: findField(fields, 'id') ?? '',
      tenant: readColumn('tenant'),
      userId: readColumn('user_id'),
    },
    learnerSeq: Number(readColumn('learner_seq')),
    /** '' if the row is no accepted answer (countedRows in warehouse/schema/attempt-tables.ts). */
    removedField: Number(readColumn('learner_version')) > 0 ? acceptedField(readColumn('tenant'), day) : '',
  };
}

export type ParkedEntry = ReturnType<typeof toParkedEntry>;
export type RedriveCounts = ReturnType<typeof createRedriveCounts>;
export type ParkedRows = ReturnType<typeof createParkedRows>;

export const createParkedRows = (redis: RedisClient) => ({
  listStreams: async (partition: number | null): Promise<string[]> => {
    const partitions = Number((await mapRedisErrors(redis.hget(metaKey, 'partitions'))) ?? 0);
    const selected = indices(partitions).filter((one) => partition === null || one === partition);
    const streams = selected.flatMap((one) => [outboxKey(one), journalKey(one), forecastsKey(one)]);
    return partition === null ? [...streams, ...sharedJournalKeys] : streams;
  },
  /** @param after parked id in the first stream */
  listEntries: async function* (streams: readonly string[], after: string | null = null) {
    for (const [i, stream] of streams.entries()) {
      const from = i === 0 && after !== null ? `(${after}` : '-';
      for await (const page of readStreamPages(redis, parkedKey(stream), { from }))
        for (const entry of page) yield toParkedEntry(stream, entry);
    }
  },
  redrive: async (streams: readonly string[]): Promise<RedriveCounts> => {
    const total = createRedriveCounts();
    for (const stream of streams) await redrive(redis, stream, total);
    return total;
  },
});

/** `id`: in the original stream. `parkedAt`: Unix milliseconds. */
const toParkedEntry = (stream: string, [parkedId, fields]: StreamEntry) => ({
  parkedId,
  stream,
  id: findField(fields, 'id') ?? '',
  tenant: parseTenant(findField(fields, 'k'), findField(fields, 'r')),
  reason: findField(fields, 'reason') ?? '',
  parkedAt: Number.parseInt(parkedId, 10),
});

/** @param kind null: an answer */
function parseTenant(kind: string | null, row: string | null): string | null {
  const journalKind = journalKinds.find((one) => one === kind);
  const columns: readonly string[] = journalKind === undefined ? attemptColumns : journalColumns[journalKind];
  const tenant = row?.split('\t')[columns.indexOf('tenant')];
  return tenant !== undefined && plainName.test(tenant) ? tenant : null;
}

/** `stayed`: stream full or correction pending. `erased`: deleted rows of erased learners. */
const createRedriveCounts = () => ({ moved: 0, stayed: 0, erased: 0 });

/** Stops at the row that was newest at the start: rows that are rejected again stay parked. */
export async function redrive(
  redis: RedisClient,
  stream: string,
  total = createRedriveCounts(),
): Promise<RedriveCounts> {
  const parked = parkedKey(stream);
  const [newest] = await mapRedisErrors(redis.xrevrange(parked, '+', '-', 'COUNT', 1));
  if (newest === undefined) return total;
  const maxEntries = stream.endsWith(':out') ? maxOutboxEntries : maxJournalEntries;
  for await (const page of readStreamPages(redis, parked, { size: rowsPerPage, to: newest[0] })) {
    total.erased += await removeErasedRows(redis, stream, page);
    const checkedTo = await findFirstCorrection(redis, stream);
    const ids = page.map(([id]) => id);
    const [moved, stayed] = await redriveScript(redis, parked, stream, maxEntries, checkedTo, ...ids);
    total.moved += moved;
    total.stayed += stayed;
  }
  return total;
}

/** Outboxes only: the journal's drain removes erased journal rows. */
async function removeErasedRows(
  redis: RedisClient,
  stream: string,
  page: readonly StreamEntry[],
): Promise<number> {
  const [, partition] = /^st:\{p(\d+)\}:out$/.exec(stream) ?? [];
  if (partition === undefined) return 0;
  const rows = page.map(parseParkedRow);
  const erased = await findErasedLearners(
    redis,
    rows.map(({ tenant, userId }) => ({ partition: Number(partition), hash: hashLearner(tenant, userId) })),
  );
  const erasedEntries = rows.flatMap(({ id, outboxId, removedField }, i) => {
    const end = erased[i];
    return end && isBefore(parseOutboxId(outboxId), end.below) ? [id, removedField] : [];
  });
  return removeEntries(redis, Number(partition), erasedEntries);
}

/** @returns id of the first correction, else of the last entry */
async function findFirstCorrection(redis: RedisClient, stream: string): Promise<string> {
  let last = '-';
  for await (const page of readStreamPages(redis, stream, { size: rowsPerPage })) {
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
const redriveScript = defineScript(2)<
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
