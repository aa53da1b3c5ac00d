/** Display names and attributes of learners. */
import Type from 'typebox';
import { encodeProfileRow } from '../../contracts/journal/journal.js';
import { Attributes, type Profile } from '../../contracts/learners/groups.js';
import { type LearnerId, learnerName } from '../../contracts/learners/learner-name.js';
import type { ProfileRecord } from '../../contracts/rebuild/rebuild-tasks.js';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import { nullable } from '../../contracts/schema/validate.js';
import { unavailable } from '../../errors.js';
import { sendPerKey } from '../redis/commands/bulk-operations.js';
import { defineScript, nowLua } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import { markerName, maxJournalEntries, partitionOf, partitionPrefix, profileKey } from '../redis/keys.js';

const StoredProfile = Type.Object({
  v: Type.Literal(1),
  updatedAt: Type.Integer(),
  displayName: nullable(Type.String()),
  attributes: Attributes,
});
const parseProfile = createStoredParser(StoredProfile, 'a stored profile');

export interface DatedProfile extends Profile {
  /** Unix milliseconds on Redis' clock. */
  readonly updatedAt: number;
}

/** @returns null if not set, or removed */
function decodeProfile(text: string | null): DatedProfile | null {
  if (text === null) return null;
  const { v: _, ...profile } = parseProfile(text);
  return isEmpty(profile) ? null : profile;
}

const isEmpty = ({ displayName, attributes }: Profile): boolean =>
  displayName === null && Object.keys(attributes).length === 0;

const encodeRest = ({ displayName, attributes }: Profile): string =>
  JSON.stringify({ displayName, attributes }).slice(1);

/** A removed profile leaves its time, so that every change has a later one. */
const writeProfile = defineScript(1)<
  [prefix: string, name: string, rest: string, row: string, maxJournal: number],
  [status: 'written' | 'lost' | 'full', updatedAt: string]
>(`
${nowLua}
local key, journal = KEYS[1] .. ':u:' .. ARGV[1], KEYS[1] .. ':journal'
if redis.call('EXISTS', KEYS[1] .. ':${markerName}') == 0 then return { 'lost', '' } end
if redis.call('XLEN', journal) >= tonumber(ARGV[4]) then return { 'full', '' } end
local previous = tonumber(string.match(redis.call('GET', key) or '', '"updatedAt":(%d+)')) or 0
local at = string.format('%.0f', math.max(tonumber(now()), previous + 1))
redis.call('SET', key, '{"v":1,"updatedAt":' .. at .. ',' .. ARGV[2])
redis.call('XADD', journal, '*', 'k', 'profile', 'r', at .. '\\t' .. ARGV[3])
return { 'written', at }
`);

export const readStoredProfile = async (
  client: RedisClient,
  partition: number,
  { tenant, userId }: LearnerId,
): Promise<DatedProfile | null> =>
  decodeProfile(await mapRedisErrors(client.get(profileKey(partition, tenant, userId))));

export type ProfileStore = ReturnType<typeof createProfileStore>;

export function createProfileStore(client: RedisClient, partitions: number, maxJournal = maxJournalEntries) {
  const keyOf = (tenant: string, userId: string): string =>
    profileKey(partitionOf(tenant, userId, partitions), tenant, userId);
  return {
    read: (tenant: string, userId: string): Promise<DatedProfile | null> =>
      readStoredProfile(client, partitionOf(tenant, userId, partitions), { tenant, userId }),
    /** Without learners that have no profile. */
    readMany: async (tenant: string, userIds: readonly string[]): Promise<Map<string, DatedProfile>> => {
      const keys = userIds.map((userId) => keyOf(tenant, userId));
      const texts = await sendPerKey<string | null>(client, 'get', keys);
      return new Map(
        texts.flatMap((text, i) => {
          const profile = decodeProfile(text);
          return profile === null ? [] : [[userIds[i] as string, profile] as const];
        }),
      );
    },
    /** Replaces the profile; an empty one removes it. @returns Unix milliseconds on Redis' clock */
    write: async (tenant: string, userId: string, profile: Profile): Promise<number> => {
      const prefix = partitionPrefix(partitionOf(tenant, userId, partitions));
      const row = encodeProfileRow({ tenant, userId }, profile);
      const [status, updatedAt] = await withReplication(client, prefix, () =>
        writeProfile(client, prefix, learnerName(tenant, userId), encodeRest(profile), row, maxJournal),
      );
      if (status === 'written') return Number(updatedAt);
      throw unavailable(
        status === 'lost'
          ? 'Learner state was lost and is not rebuilt yet; retry later.'
          : 'Too many changes are waiting for ClickHouse; retry later.',
      );
    },
  };
}

export const restoreProfile = (client: RedisClient, partition: number, record: ProfileRecord) => {
  const { tenant, userId, updatedAt } = record;
  const text = `{"v":1,"updatedAt":${updatedAt},${encodeRest(record)}`;
  return mapRedisErrors(client.set(profileKey(partition, tenant, userId), text));
};
