/** Streams of facts for ClickHouse. Scripts append to them atomically with each change. */
import { computeSum, indices } from '../../lists.js';
import { fetchStreamLengths, findField, removeStreamEntries } from '../redis/commands/bulk-operations.js';
import { defineScript } from '../redis/commands/script.js';
import type { RedisClient } from '../redis/connection/client.js';
import { forecastsKey, journalKey, parkedKey, sharedJournalKeys } from '../redis/keys.js';
import type { RawStreamEntry } from './outbox-page.js';
import { countParked, parkEntry } from './parked-rows.js';

export type JournalEntry = ReturnType<typeof parseJournalEntry>;
export type Journal = ReturnType<typeof createJournal>;
export type JournalFacts = Awaited<ReturnType<Journal['facts']>>;

/** Per stream: a fraction of a millisecond of Redis. */
const pageRows = 500;

export function createJournal(redis: RedisClient, partitions: number) {
  const partitionIndices = indices(partitions);
  const sources = [
    ...sharedJournalKeys,
    ...partitionIndices.map(journalKey),
    ...partitionIndices.map(forecastsKey),
  ];

  /**
   * The oldest entries of every source.
   * @param maxBytes soft: reading stops after the source that reaches it
   */
  async function peek(maxBytes: number) {
    const lengths = await fetchStreamLengths(redis, sources);
    const entries: JournalEntry[] = [];
    let bytes = 0;
    for (const source of sources.filter((_, i) => (lengths[i] ?? 0) > 0)) {
      if (bytes >= maxBytes) break;
      const found = await redis.xrangeBuffer(source, '-', '+', 'COUNT', pageRows);
      const sourceEntries = found.map((entry) => parseJournalEntry(source, entry));
      entries.push(...sourceEntries);
      bytes += computeSum(sourceEntries.map(({ row }) => row.length));
    }
    return { entries, hasMore: entries.length < computeSum(lengths) };
  }

  return {
    peek,
    /** Not up to the last id: after a failover, Redis may assign lower ids. */
    remove: (entries: readonly JournalEntry[]): Promise<unknown> =>
      removeStreamEntries(
        redis,
        entries.map(({ source, id }) => ({ source, entry: id })),
      ),
    /** @returns the dead-letter stream; null if it is full */
    park: async ({ source, id }: JournalEntry, reason: string): Promise<string | null> =>
      (await parkEntry(redis, source, id, reason)) ? parkedKey(source) : null,
    facts: async () => {
      const [lengths, parked] = await Promise.all([
        fetchStreamLengths(redis, sources),
        countParked(redis, sources),
      ]);
      return { journalLength: computeSum(lengths), ...parked };
    },
  };
}

/** @returns number of rows without room */
const appendJournal = defineScript(1)<[key: string, bound: number, kind: string, ...rows: string[]], number>(`
local rows = #ARGV - 2
local room = math.max(0, tonumber(ARGV[1]) - redis.call('XLEN', KEYS[1]))
local appended = math.min(room, rows)
for i = 3, 2 + appended do redis.call('XADD', KEYS[1], '*', 'k', ARGV[2], 'r', ARGV[i]) end
return rows - appended
`);

/**
 * Never rejects: rows that Redis does not accept are lost and counted.
 * @param onLost the error is null if there was no room
 */
export async function recordForecasts(
  client: RedisClient,
  partition: number,
  rows: readonly string[],
  maxEntries: number,
  onLost: (rows: number, error: unknown) => void,
): Promise<void> {
  if (rows.length === 0) return;
  try {
    const lost = await appendJournal(client, forecastsKey(partition), maxEntries, 'forecast_2', ...rows);
    if (lost > 0) onLost(lost, null);
  } catch (error) {
    onLost(rows.length, error);
  }
}

const parseJournalEntry = (source: string, [id, fields]: RawStreamEntry) => ({
  source,
  id: id.toString('latin1'),
  /** One of `journalKinds`, unless another version wrote it. */
  kind: findField(fields, 'k')?.toString() ?? '',
  row: findField(fields, 'r') ?? Buffer.alloc(0),
});
