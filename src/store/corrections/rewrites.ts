import { encodeCorrection, type RewriteCorrection } from '../../contracts/corrections/corrections.js';
import type { RewriteStatus } from '../../contracts/corrections/rewrite-tasks.js';
import { learnerName } from '../../contracts/learners/learner-name.js';
import { splitIntoEntries } from '../../contracts/outbox/outbox-ids.js';
import type { ReplayedStates } from '../../domain/history/replay.js';
import { dumpLearner } from '../learners/learner-dump.js';
import { defineScript, nowLua } from '../redis/commands/script.js';
import type { RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import { markerName, maxJournalEntries, partitionPrefix } from '../redis/keys.js';

/** Rewriting this many answers blocks Redis for about half a second. */
export const maxRewrittenAnswers = 50_000;

/** Of a partition, corrected by one statement. Few, because ClickHouse lacks their answers until the next insert. */
export const rewritesPerStatement = 10;

export interface Rewrite {
  /** Version of the record before the replay. */
  readonly expectedVersion: number;
  readonly correction: RewriteCorrection;
  readonly states: ReplayedStates | null;
  readonly rows: readonly string[];
  /** Arrival month of the oldest removed row, such as 202601. */
  readonly month: number;
}

/**
 * Commits each rewrite independently. The corrections precede all rows, so that the drain can apply them together.
 * @param retractedRow journal row of a retraction; '': none
 */
export function commitRewrites(
  client: RedisClient,
  partition: number,
  rewrites: readonly Rewrite[],
  maxOutboxRows: number,
  retractedRow = '',
): Promise<RewriteStatus[]> {
  const prefix = partitionPrefix(partition);
  return withReplication(client, prefix, () =>
    rewriteLearnersScript(
      ...([client, prefix, maxOutboxRows, maxJournalEntries, retractedRow] as const),
      ...rewrites.flatMap(encodeRewrite),
    ),
  );
}

function encodeRewrite({ expectedVersion, month, correction, states, rows }: Rewrite) {
  const { records, items } =
    states === null ? { records: [], items: [[], []] as const } : dumpLearner(states);
  const lists = [...[records, ...items].map((fields) => fields.flat()), splitIntoEntries(rows)];
  const name = learnerName(correction.tenant, correction.userId);
  return [
    ...[name, expectedVersion, month, encodeCorrection(correction), rows.length],
    ...lists.flatMap((values) => [values.length, ...values]),
  ];
}

/**
 * `rewrites`: name, version, month, correction and number of rows of each learner, then four lists, each after its
 * length: records, items of the even generation, items of the odd one, row entries. Event ids stay used.
 */
const rewriteLearnersScript = defineScript(1)<
  [
    ...[prefix: string, outboxBound: number, journalBound: number, journalRow: string],
    ...rewrites: (string | number | Buffer)[],
  ],
  RewriteStatus[]
>(`
${nowLua}
local prefix, at = KEYS[1], 3
local out, journal = prefix .. ':out', prefix .. ':journal'
local room = tonumber(ARGV[1]) - tonumber(redis.call('GET', out .. ':rows') or 0)
local fence = tonumber(redis.call('ZSCORE', prefix .. ':archived', 'month') or -1)
local isLost = redis.call('EXISTS', prefix .. ':${markerName}') == 0
local isFull = ARGV[3] ~= '' and redis.call('XLEN', journal) >= tonumber(ARGV[2])
local function take() at = at + 1 return ARGV[at] end
local function findStatus(name, version, month, rows)
  if isLost then return 'lost' end
  local record = redis.call('HGET', prefix .. ':l:' .. name, 'L')
  if not record or struct.unpack('<I4', record, 5) ~= version then return 'conflict' end
  if fence >= month then return 'archived' end
  if isFull or rows > room then return 'full' end
  room = room - rows
  return 'done'
end
-- Lua's stack limits the number of arguments of a call.
local function replace(hash, list)
  redis.call('DEL', hash)
  for i = list[1], list[2], 1000 do redis.call('HSET', hash, unpack(ARGV, i, math.min(i + 999, list[2]))) end
end
local statuses, accepted = {}, {}
while at < #ARGV do
  local one = { name = take(), version = tonumber(take()), month = tonumber(take()), correction = take(), rows = tonumber(take()) }
  for i = 1, 4 do
    local size = tonumber(take())
    one[i] = { at + 1, at + size }
    at = at + size
  end
  local status = findStatus(one.name, one.version, one.month, one.rows)
  statuses[#statuses + 1] = status
  if status == 'done' then accepted[#accepted + 1] = one end
end
for _, one in ipairs(accepted) do
  if one.rows > 0 or ARGV[3] ~= '' then redis.call('XADD', out, '*', 'c', one.correction) end
end
for _, one in ipairs(accepted) do
  local key = prefix .. ':l:' .. one.name
  local goal = redis.call('HGET', key, 'G')
  replace(key, one[1])
  if goal then redis.call('HSET', key, 'G', goal) end
  replace(prefix .. ':h0:' .. one.name, one[2])
  replace(prefix .. ':h1:' .. one.name, one[3])
  for i = one[4][1], one[4][2] do redis.call('XADD', out, '*', 'r', ARGV[i]) end
  redis.call('INCRBY', out .. ':rows', one.rows)
  if ARGV[3] ~= '' then redis.call('XADD', journal, '*', 'k', 'taken_back', 'r', now() .. '\\t' .. ARGV[3]) end
end
return statuses
`);
