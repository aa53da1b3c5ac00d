import { encodeCorrection, type RewriteCorrection } from '../../contracts/corrections/corrections.js';
import type { RetractionResult } from '../../contracts/corrections/retraction-task.js';
import { encodeRetractionRow, type RetractedAnswer } from '../../contracts/journal/journal.js';
import { learnerName } from '../../contracts/learners/learner-name.js';
import { splitIntoEntries } from '../../contracts/outbox/outbox-ids.js';
import type { ReplayedStates } from '../../domain/history/replay.js';
import { dumpLearner } from '../learners/learner-dump.js';
import { defineScript, nowLua } from '../redis/commands/script.js';
import type { RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import { markerName, maxJournalEntries, partitionPrefix } from '../redis/keys.js';

export interface Retraction {
  readonly partition: number;
  /** Version of the record before the replay. */
  readonly expectedVersion: number;
  readonly correction: RewriteCorrection;
  readonly answer: RetractedAnswer;
  readonly states: ReplayedStates | null;
  readonly rows: readonly string[];
  /** Arrival month of the oldest removed row, such as 202601. */
  readonly month: number;
}

type RetractionStatus = Exclude<RetractionResult['status'], 'absent' | 'incomplete'>;

export function commitRetraction(
  client: RedisClient,
  { partition, expectedVersion, month, correction, answer, states, rows }: Retraction,
  maxOutboxRows: number,
): Promise<RetractionStatus> {
  const { records, items } =
    states === null ? { records: [], items: [[], []] as const } : dumpLearner(states);
  const lists = [...[records, ...items].map((fields) => fields.flat()), splitIntoEntries(rows)];
  const prefix = partitionPrefix(partition);
  return withReplication(client, prefix, () =>
    rewriteLearnerScript(
      ...([client, prefix, learnerName(correction.tenant, correction.userId), expectedVersion] as const),
      ...([maxOutboxRows, maxJournalEntries, month, encodeCorrection(correction)] as const),
      ...([encodeRetractionRow(answer), rows.length] as const),
      ...lists.flatMap((values) => [values.length, ...values]),
    ),
  );
}

/**
 * `lists`, each after its length: records, items of the even generation, items of the odd one, row entries.
 * Event ids stay used.
 */
const rewriteLearnerScript = defineScript(1)<
  [
    ...[prefix: string, name: string, version: number, outboxBound: number, journalBound: number],
    ...[month: number, correction: string, journalRow: string, rows: number],
    ...lists: (string | number | Buffer)[],
  ],
  RetractionStatus
>(`
${nowLua}
local prefix, name, rows = KEYS[1], ARGV[1], tonumber(ARGV[8])
local key, out, journal = prefix .. ':l:' .. name, prefix .. ':out', prefix .. ':journal'
if redis.call('EXISTS', prefix .. ':${markerName}') == 0 then return 'lost' end
local record = redis.call('HGET', key, 'L')
if not record or struct.unpack('<I4', record, 5) ~= tonumber(ARGV[2]) then return 'conflict' end
local fence = redis.call('ZSCORE', prefix .. ':archived', 'month')
if fence and tonumber(fence) >= tonumber(ARGV[5]) then return 'archived' end
if tonumber(redis.call('GET', out .. ':rows') or 0) + rows > tonumber(ARGV[3]) then return 'full' end
if redis.call('XLEN', journal) >= tonumber(ARGV[4]) then return 'full' end

-- First and last index of the current list in ARGV.
local from, to = nil, 8
local function nextList() from, to = to + 2, to + 1 + tonumber(ARGV[to + 1]) end
local function replace(hash)
  nextList()
  redis.call('DEL', hash)
  -- Lua's stack limits the number of arguments of a call.
  for i = from, to, 1000 do redis.call('HSET', hash, unpack(ARGV, i, math.min(i + 999, to))) end
end
local goal = redis.call('HGET', key, 'G')
replace(key)
if goal then redis.call('HSET', key, 'G', goal) end
replace(prefix .. ':h0:' .. name)
replace(prefix .. ':h1:' .. name)
redis.call('XADD', out, '*', 'c', ARGV[6])
nextList()
for i = from, to do redis.call('XADD', out, '*', 'r', ARGV[i]) end
redis.call('INCRBY', out .. ':rows', rows)
redis.call('XADD', journal, '*', 'k', 'taken_back', 'r', now() .. '\\t' .. ARGV[7])
return 'done'
`);
