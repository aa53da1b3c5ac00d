/** Goals as JSON in learners' hashes. */
import { createHash } from 'node:crypto';
import { Type } from 'typebox';
import { encodeGoalRow } from '../../contracts/journal/journal.js';
import { learnerName } from '../../contracts/learners/learner-name.js';
import type { IfMatch, TaggedValue } from '../../contracts/schema/preconditions.js';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import { dayMs } from '../../domain/base/common.js';
import { type GoalSetting, type GoalStatus, goalStatuses, type StoredGoal } from '../../domain/score/goal.js';
import { unavailable } from '../../errors.js';
import { compareAndSetField, defineScript } from '../redis/commands/script.js';
import { fetchSubscriptions } from '../redis/commands/webhook-events.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import { learnerKey, markerName, maxJournalEntries, partitionOf, partitionPrefix } from '../redis/keys.js';
import { subscribesToGoals } from './goal-checks.js';
import { goalField } from './learner-codec.js';
import type { LearnerLocation } from './learner-commands.js';

/** A null target score means a removed goal. */
const StoredFields = Type.Object({
  v: Type.Literal(1),
  updatedAt: Type.Integer({ minimum: 0 }),
  targetScore: Type.Union([Type.Integer(), Type.Null()]),
  targetDate: Type.Union([Type.String(), Type.Null()]),
  status: Type.Optional(Type.Enum(goalStatuses)),
});
type StoredFields = Type.Static<typeof StoredFields>;
const parseStoredGoal = createStoredParser(StoredFields, 'the stored goal');

/** @throws Error for another version */
export function decodeGoal(value: string | undefined | null): StoredGoal | null {
  if (value === undefined || value === null) return null;
  const { targetScore, targetDate, updatedAt, status = null } = parseStoredGoal(value);
  return targetScore === null ? null : { targetScore, targetDate, updatedAt, status };
}

/** `writeGoal` builds the same text in Lua. */
export const encodeGoal = (goal: Omit<StoredFields, 'v'>): string =>
  `{"v":1,"updatedAt":${goal.updatedAt},${encodeGoalTail(goal)}`;

const encodeGoalTail = ({ targetScore, targetDate }: Omit<StoredFields, 'v' | 'updatedAt'>): string =>
  JSON.stringify({ targetScore, targetDate }).slice(1);

const removeStatus = (value: string): string => value.replace(/,"status":"\w+"/, '');

/** Ignores the status, which is not part of the setting. `writeGoal` computes the same tag. */
const computeTag = (value: string): string => createHash('sha1').update(removeStatus(value)).digest('hex');

/** Only if `record` is unchanged. */
export async function storeGoalStatus(
  client: RedisClient,
  { partition, tenant, userId }: LearnerLocation,
  record: string,
  status: GoalStatus,
): Promise<void> {
  const key = learnerKey(partition, tenant, userId);
  const updated = removeStatus(record).replace(/}$/, `,"status":"${status}"}`);
  await compareAndSetField(client, key, goalField, record, updated);
}

export interface GoalWrite {
  readonly tenant: string;
  readonly userId: string;
  readonly setting: GoalSetting | null;
  readonly ifMatch: IfMatch;
  readonly now: number;
}

/** `mismatch`: another tag, or no goal. `absent`: no goal to remove. */
export type GoalWriteResult =
  | { readonly status: 'written'; readonly updatedAt: number; readonly tag: string }
  | { readonly status: 'mismatch' | 'absent' };

/**
 * A removed goal leaves its time, so that every change has a later one.
 * `tags`: replaceable versions between spaces; `*`: any; '': no condition. `rest`, `row`: value and row after
 * `updatedAt`. `checkAt`: Unix milliseconds, or ''. Result: status (`lost`: Redis is empty; `full`: the
 * journal) and value.
 */
const writeGoal = defineScript(1)<
  [
    ...[prefix: string, name: string, tags: string, mustExist: 0 | 1, now: number, rest: string, row: string],
    ...[maxJournal: number, hasSubscription: 0 | 1, checkAt: number | ''],
  ],
  [status: string, value: string]
>(`
local prefix, name = KEYS[1], ARGV[1]
local key, journal = prefix .. ':l:' .. name, prefix .. ':journal'
-- Before any other check: without its data, Redis does not know whether the learner has a goal.
if redis.call('EXISTS', prefix .. ':${markerName}') == 0 then return { 'lost', '' } end
local stored = redis.call('HGET', key, 'G')
local present = stored and not string.find(stored, '"targetScore":null', 1, true)
if ARGV[3] == '1' and not present then return { 'absent', '' } end
if ARGV[2] ~= '' then
  local tag = present and redis.sha1hex((string.gsub(stored, ',"status":"[%a_]+"', '')))
  if not tag or not (ARGV[2] == '*' or string.find(ARGV[2], ' ' .. tag .. ' ', 1, true)) then
    return { 'mismatch', '' }
  end
end
if redis.call('XLEN', journal) >= tonumber(ARGV[7]) then return { 'full', '' } end
local previous = stored and tonumber(string.match(stored, '"updatedAt":(%d+)')) or 0
local updatedAt = string.format('%.0f', math.max(tonumber(ARGV[4]), previous + 1))
local value = '{"v":1,"updatedAt":' .. updatedAt .. ',' .. ARGV[5]
redis.call('HSET', key, 'G', value)
redis.call('XADD', journal, '*', 'k', 'goal', 'r', updatedAt .. '\\t' .. ARGV[6])
local checks, alerts = prefix .. ':goal:checks', prefix .. ':goal:alerts'
-- Claimed checks and raised alerts belong to the previous goal.
redis.call('ZREM', checks, '!' .. name)
redis.call('HDEL', alerts, name)
if ARGV[8] == '1' then
  redis.call('HSET', alerts, name, '{"updatedAt":' .. updatedAt .. ',"reached":false,"atRisk":false}')
end
if ARGV[9] ~= '' then redis.call('ZADD', checks, 'LT', ARGV[9], name) end
return { 'written', value }
`);

export type GoalStore = ReturnType<typeof createGoalStore>;

export function createGoalStore(client: RedisClient, partitions: number, maxPendingRows = maxJournalEntries) {
  return {
    read: async (tenant: string, userId: string): Promise<TaggedValue<StoredGoal> | null> => {
      const key = learnerKey(partitionOf(tenant, userId, partitions), tenant, userId);
      const value = await mapRedisErrors(client.hget(key, goalField));
      const goal = decodeGoal(value);
      return value === null || goal === null ? null : { value: goal, tag: computeTag(value) };
    },
    write: async ({ tenant, userId, setting, ifMatch, now }: GoalWrite): Promise<GoalWriteResult> => {
      const prefix = partitionPrefix(partitionOf(tenant, userId, partitions));
      const goal = setting ?? { targetScore: null, targetDate: null };
      const tags = ifMatch === null || ifMatch === '*' ? (ifMatch ?? '') : ` ${ifMatch.join(' ')} `;
      const row = encodeGoalRow({ tenant, userId, ...goal });
      const [subscribedTypes = ''] = await fetchSubscriptions(client, [tenant]);
      const hasSubscription = setting !== null && subscribesToGoals(subscribedTypes);
      const checkAt = hasSubscription ? now : goal.targetDate === null ? '' : now + dayMs;
      const reply = await withReplication(client, prefix, () =>
        writeGoal(
          ...([client, prefix, learnerName(tenant, userId), tags, setting === null ? 1 : 0, now] as const),
          ...([encodeGoalTail(goal), row, maxPendingRows, hasSubscription ? 1 : 0, checkAt] as const),
        ),
      );
      return toWriteResult(...reply);
    },
  };
}

function toWriteResult(status: string, value: string): GoalWriteResult {
  if (status === 'mismatch' || status === 'absent') return { status };
  if (status === 'lost') throw unavailable('Learner state was lost and is not rebuilt yet; retry later.');
  if (status === 'full') throw unavailable('Too many changes are waiting for ClickHouse; retry later.');
  return { status: 'written', updatedAt: parseStoredGoal(value).updatedAt, tag: computeTag(value) };
}
