/** A learner's rows that are not in ClickHouse yet, including dead-letter rows. */
import {
  type AttemptRow,
  attemptColumns,
  attemptRowPrefix,
  decodeAttemptRow,
} from '../../contracts/answers/attempt-row.js';
import type { ExportRecord } from '../../contracts/answers/export-record.js';
import { decodeJournalRow, type JournalKind, learnerRowPrefix } from '../../contracts/journal/journal.js';
import { indices } from '../../lists.js';
import { defineScript } from '../redis/commands/script.js';
import type { RedisClient } from '../redis/connection/client.js';
import {
  forecastsKey,
  groupsJournalKey,
  journalKey,
  outboxKey,
  parkedKey,
  partitionOf,
} from '../redis/keys.js';

export type PendingAttempts = ReturnType<typeof createPendingAttempts>;

export const createPendingAttempts = (client: RedisClient, partitions: number) => ({
  /**
   * Outbox rows, then parked rows, newest first. After a correction, rows may share a number: the first one
   * counts, and overrides ClickHouse. Read ClickHouse later: rows leave Redis only after they are stored.
   */
  readPages: async function* (tenant: string, userId: string) {
    const source = outboxKey(partitionOf(tenant, userId, partitions));
    for (const [place, key] of [['outbox', source] as const, ['parked', parkedKey(source)] as const])
      for await (const lines of readRows(client, key, attemptRowPrefix(tenant, userId), 0))
        yield lines.map((line) => ({ place, line, row: decodeOrNull(line) }));
  },
  findLearners: async (tenant: string, eventId: string): Promise<string[]> => {
    const found: string[] = [];
    for (const source of indices(partitions).map(outboxKey))
      for (const key of [source, parkedKey(source)])
        for await (const lines of readRows(client, key, `${eventId}\t`, attemptColumns.indexOf('event_id')))
          for (const event of lines.flatMap((line) => decodeOrNull(line)?.event ?? []))
            if (event.tenant === tenant) found.push(event.userId);
    return found;
  },
});

function decodeOrNull(line: string): AttemptRow | null {
  try {
    return decodeAttemptRow(line);
  } catch {
    return null;
  }
}

const recordTypes = {
  ...{ goal: 'goal_change', taken_back: 'taken_back' },
  ...{ forecast: 'served_forecast', forecast_2: 'served_forecast' },
  ...{ profile: 'profile_change', group_member: 'group_member_change' },
} as const satisfies Partial<Record<JournalKind, string>>;
type RecordKind = keyof typeof recordTypes;
const isRecordKind = (kind: string): kind is RecordKind => Object.hasOwn(recordTypes, kind);

export async function* readPendingRecords(
  client: RedisClient,
  tenant: string,
  userId: string,
  partitions: number,
): AsyncGenerator<readonly ExportRecord[]> {
  const own = journalKey(partitionOf(tenant, userId, partitions));
  // Forecasts of a class may be in any partition.
  for (const source of [own, groupsJournalKey, ...indices(partitions).map(forecastsKey)])
    for (const [place, key] of [['journal', source] as const, ['parked', parkedKey(source)] as const])
      for await (const rows of readRows(client, key, learnerRowPrefix(tenant, userId), 1, true))
        yield rows.flatMap((line) => {
          const [kind = '', ...fields] = line.split('\t');
          if (!isRecordKind(kind)) return [];
          return [{ type: recordTypes[kind], place, ...decodeJournalRow(kind, fields.join('\t')) }];
        });
}

/** About a millisecond of Redis. */
const pageEntries = 500;

/**
 * Newest first, without rows appended during the read.
 * @param prefix of the learner's rows, after `leadingFields` fields
 * @param withKind puts the kind of a journal row and a tab before it
 */
async function* readRows(
  client: RedisClient,
  key: string,
  prefix: string,
  leadingFields: number,
  withKind = false,
): AsyncGenerator<readonly string[]> {
  for (let from: string | null = '+'; from !== null; ) {
    const [oldest, ...rows] = await findRows(
      client,
      key,
      from,
      pageEntries,
      prefix,
      leadingFields,
      withKind ? 1 : 0,
    );
    if (rows.length > 0) yield rows;
    from = oldest === '' ? null : `(${oldest}`;
  }
}

/** @returns id of the page's oldest entry ('' at the start), then the learner's rows */
const findRows = defineScript(1)<
  [key: string, from: string, entries: number, prefix: string, leading: number, withKind: 0 | 1],
  [oldest: string, ...rows: string[]]
>(`
local entries = redis.call('XREVRANGE', KEYS[1], ARGV[1], '-', 'COUNT', ARGV[2])
local prefix, leading = ARGV[3], tonumber(ARGV[4])
local found = { #entries < tonumber(ARGV[2]) and '' or entries[#entries][1] }
local function hasPrefix(row)
  local at = 1
  for _ = 1, leading do at = (string.find(row, '\\t', at, true) or #row) + 1 end
  return string.sub(row, at, at + #prefix - 1) == prefix
end
local function add(rows, kind)
  -- Most entries have no such row.
  if not string.find(rows, prefix, 1, true) then return end
  local matching = {}
  for row in string.gmatch(rows, '[^\\n]+') do
    if hasPrefix(row) then matching[#matching + 1] = row end
  end
  for i = #matching, 1, -1 do found[#found + 1] = kind .. matching[i] end
end
for _, entry in ipairs(entries) do
  local fields, kind = entry[2], ''
  for i = 1, #fields, 2 do
    if fields[i] == 'k' and ARGV[5] == '1' then kind = fields[i + 1] .. '\\t' end
    if fields[i] == 'r' then add(fields[i + 1], kind) end
  end
end
return found
`);
