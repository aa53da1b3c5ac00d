/** Groups of learners, of all tenants in one slot: a change of a group and its members is atomic. */
import Type, { type Static } from 'typebox';
import { encodeGroupRow } from '../../contracts/journal/journal.js';
import { type GroupSetting, groupLimits } from '../../contracts/learners/groups.js';
import type { LearnerId } from '../../contracts/learners/learner-name.js';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import { nullable } from '../../contracts/schema/validate.js';
import { ApiError, unavailable } from '../../errors.js';
import { splitIntoParts } from '../../lists.js';
import { readHash, sendPerKey } from '../redis/commands/bulk-operations.js';
import { defineScript, nowLua } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import {
  groupMembersKey,
  groupsKey,
  groupsPrefix,
  learnerGroupsKey,
  maxJournalEntries,
  metaKey,
} from '../redis/keys.js';

/** Times: Unix milliseconds on Redis' clock. */
const StoredGroup = Type.Object({
  v: Type.Literal(1),
  ...{ updatedAt: Type.Integer(), createdAt: Type.Integer() },
  ...{ name: Type.String(), kind: Type.String(), parentGroupId: nullable(Type.String()) },
});
const parseGroup = createStoredParser(StoredGroup, 'a stored group');

export interface Group extends Omit<Static<typeof StoredGroup>, 'v'> {
  readonly groupId: string;
}

export interface GroupWithMembers extends Group {
  /** User id → Unix milliseconds of joining. */
  readonly members: ReadonlyMap<string, number>;
}

export interface GroupChange {
  /** Null deletes the group. */
  readonly setting: GroupSetting | null;
  /** Must not be members yet. */
  readonly added: readonly string[];
  /** Must be members. */
  readonly removed: readonly string[];
}

/**
 * ARGV: tenant, id, expected JSON ('': none), JSON after the times ('': delete), row between its time and `created_at`,
 * limits of the journal and of groups, number of added members, time ('': now), added and removed members. Ids contain no
 * control characters, so rows escape only backslashes.
 */
const changeGroup = defineScript(1)<
  [
    ...[prefix: string, tenant: string, groupId: string, expected: string, rest: string, row: string],
    ...[maxJournal: number, maxGroups: number, added: number, at: string, ...userIds: string[]],
  ],
  [status: 'written' | 'changed' | 'full' | 'many', updatedAt: string]
>(`
${nowLua}
local prefix, tenant, id, expected, rest = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local groups, journal = prefix .. ':g:' .. tenant, prefix .. ':journal'
local members = prefix .. ':m:' .. tenant .. ':' .. id
if (redis.call('HGET', groups, id) or '') ~= expected then return { 'changed', '' } end
if expected == '' and redis.call('HLEN', groups) >= tonumber(ARGV[7]) then return { 'many', '' } end
if redis.call('XLEN', journal) + #ARGV - 9 > tonumber(ARGV[6]) then return { 'full', '' } end
local function escape(text) return (string.gsub(text, '\\\\', '\\\\\\\\')) end
local previous = tonumber(string.match(expected, '"updatedAt":(%d+)')) or 0
local at = string.format('%.0f', math.max(tonumber(ARGV[9]) or tonumber(now()), previous + 1))
local created = string.match(expected, '"createdAt":(%d+)') or at
redis.call('SADD', prefix .. ':tenants', tenant)
for i = 10, #ARGV do
  local user = ARGV[i]
  local learnerGroups = prefix .. ':l:' .. tenant .. ':' .. user
  local joins = i - 9 <= tonumber(ARGV[8])
  if joins then
    redis.call('HSET', members, user, at)
    redis.call('SADD', learnerGroups, id)
  else
    redis.call('HDEL', members, user)
    redis.call('SREM', learnerGroups, id)
  end
  local row = table.concat({ at, tenant, escape(user), escape(id), joins and '1' or '0' }, '\\t')
  redis.call('XADD', journal, '*', 'k', 'group_member', 'r', row)
end
if rest == '' then
  redis.call('HDEL', groups, id)
else
  redis.call('HSET', groups, id, '{"v":1,"updatedAt":' .. at .. ',"createdAt":' .. created .. ',' .. rest)
end
redis.call('XADD', journal, '*', 'k', 'group', 'r', at .. '\\t' .. ARGV[5] .. '\\t' .. created)
return { 'written', at }
`);

/** Redis needs 8 µs per member. */
const membersPerScript = 250;

/** @returns the change itself if it is small enough */
function takePart(change: GroupChange, before: GroupWithMembers | null): GroupChange {
  const { setting, added, removed } = change;
  if (added.length + removed.length <= membersPerScript) return change;
  const firstAdded = added.slice(0, membersPerScript);
  return {
    // Delete a group together with its last members.
    setting: setting ?? before,
    added: firstAdded,
    removed: removed.slice(0, membersPerScript - firstAdded.length),
  };
}

const createWriteError = (status: 'full' | 'many'): ApiError =>
  status === 'full'
    ? unavailable('Too many changes are waiting for ClickHouse; retry later.')
    : new ApiError(
        'LIMIT_EXCEEDED',
        `The tenant has the maximum of ${groupLimits.groupsPerTenant} groups; delete one first.`,
      );

export interface ChangedGroup {
  readonly added: number;
  readonly removed: number;
  /** Afterwards. */
  readonly members: number;
  /** Unix milliseconds on Redis' clock. */
  readonly updatedAt: number;
}

export type GroupStore = ReturnType<typeof createGroupStore>;

export function createGroupStore(client: RedisClient, maxJournal = maxJournalEntries) {
  const readText = async (tenant: string, groupId: string): Promise<string> =>
    (await mapRedisErrors(client.hget(groupsKey(tenant), groupId))) ?? '';
  const readMembers = async (tenant: string, groupId: string): Promise<Map<string, number>> => {
    // An object would lose the id `__proto__`.
    const joined = await mapRedisErrors(client.call('HGETALL', groupMembersKey(tenant, groupId)));
    const pairs = splitIntoParts(joined as string[], 2) as [userId: string, at: string][];
    return new Map(pairs.map(([userId, at]) => [userId, Number(at)]));
  };
  const readGroup = async (tenant: string, groupId: string, text: string) =>
    text === '' ? null : { ...toGroup(groupId, text), members: await readMembers(tenant, groupId) };

  /**
   * Repeats the plan after concurrent changes, and until all parts of a large change are written.
   * @param plan null: change nothing
   * @param at time of the change, Unix milliseconds; null: now. Demos have past times
   * @throws ApiError LIMIT_EXCEEDED, UNAVAILABLE: some parts may be written
   */
  async function change(
    tenant: string,
    groupId: string,
    plan: (before: GroupWithMembers | null) => GroupChange | null,
    at: number | null = null,
  ): Promise<ChangedGroup> {
    const counts = { added: 0, removed: 0 };
    for (;;) {
      const text = await readText(tenant, groupId);
      const before = await readGroup(tenant, groupId, text);
      const planned = plan(before);
      const members = before?.members.size ?? 0;
      if (planned === null) return { ...counts, members, updatedAt: before?.updatedAt ?? 0 };
      const part = takePart(planned, before);
      const [status, updatedAt] = await write(tenant, groupId, text, part, at);
      if (status === 'changed') continue;
      if (status !== 'written') throw createWriteError(status);
      counts.added += part.added.length;
      counts.removed += part.removed.length;
      const left = members + part.added.length - part.removed.length;
      if (part === planned) return { ...counts, members: left, updatedAt: Number(updatedAt) };
    }
  }

  async function write(
    tenant: string,
    groupId: string,
    expected: string,
    { setting, added, removed }: GroupChange,
    at: number | null,
  ) {
    if ((await mapRedisErrors(client.exists(metaKey))) === 0)
      throw unavailable('Learner state was lost and is not rebuilt yet; retry later.');
    const rest = setting === null ? '' : encodeSetting(setting);
    const row = encodeGroupRow(tenant, groupId, setting);
    return withReplication(client, groupsPrefix, () =>
      changeGroup(
        ...([client, groupsPrefix, tenant, groupId, expected, rest, row] as const),
        ...([maxJournal, groupLimits.groupsPerTenant, added.length, `${at ?? ''}`] as const),
        ...[...added, ...removed],
      ),
    );
  }

  return {
    change,
    read: async (tenant: string, groupId: string): Promise<GroupWithMembers | null> =>
      readGroup(tenant, groupId, await readText(tenant, groupId)),
    /** Unordered. */
    list: async (tenant: string): Promise<Group[]> => [
      ...(await readHash(client, groupsKey(tenant), toGroup)).values(),
    ],
    countMembers: (tenant: string, groupIds: readonly string[]): Promise<number[]> =>
      sendPerKey<number>(
        client,
        'hlen',
        groupIds.map((groupId) => groupMembersKey(tenant, groupId)),
      ),
    findLearnerGroups: async (tenant: string, userId: string): Promise<Group[]> => {
      const groupIds = await mapRedisErrors(client.smembers(learnerGroupsKey(tenant, userId)));
      if (groupIds.length === 0) return [];
      const texts = await mapRedisErrors(client.hmget(groupsKey(tenant), ...groupIds));
      return texts.flatMap((text, i) => (text === null ? [] : [toGroup(groupIds[i] as string, text)]));
    },
    hasMember: async (tenant: string, userId: string): Promise<boolean> =>
      (await mapRedisErrors(client.exists(learnerGroupsKey(tenant, userId)))) === 1,
  };
}

function toGroup(groupId: string, text: string): Group {
  const { v: _, ...group } = parseGroup(text);
  return { ...group, groupId };
}

export const encodeSetting = ({ name, kind, parentGroupId }: GroupSetting): string =>
  JSON.stringify({ name, kind, parentGroupId }).slice(1);

/**
 * Ends memberships that began until then, without rows: an erasure deletes the rows of the learner. The new time of a
 * group makes concurrent changes start again.
 */
const removeMemberships = defineScript(1)<
  [prefix: string, tenant: string, userId: string, until: number],
  number
>(`
local prefix, tenant, user = KEYS[1], ARGV[1], ARGV[2]
local learnerGroups, groups = prefix .. ':l:' .. tenant .. ':' .. user, prefix .. ':g:' .. tenant
local removed = 0
for _, id in ipairs(redis.call('SMEMBERS', learnerGroups)) do
  local members = prefix .. ':m:' .. tenant .. ':' .. id
  local joined = tonumber(redis.call('HGET', members, user) or '0')
  if joined <= tonumber(ARGV[3]) then
    redis.call('HDEL', members, user)
    redis.call('SREM', learnerGroups, id)
    local text = redis.call('HGET', groups, id)
    if text then
      local next = string.gsub(text, '"updatedAt":(%d+)', function(at)
        return '"updatedAt":' .. string.format('%.0f', tonumber(at) + 1)
      end, 1)
      redis.call('HSET', groups, id, next)
    end
    removed = removed + 1
  end
end
return removed
`);

/** @param until Unix milliseconds on Redis' clock */
export const removeLearnerFromGroups = (client: RedisClient, { tenant, userId }: LearnerId, until: number) =>
  removeMemberships(client, groupsPrefix, tenant, userId, until);
