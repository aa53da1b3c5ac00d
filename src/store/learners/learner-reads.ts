/** Reads learners' states from Redis. */
import type { ExportRecord } from '../../contracts/answers/export-record.js';
import type { NonEmpty } from '../../domain/base/common.js';
import {
  type ItemRecord,
  type ItemWindow,
  type LearnerState,
  newLearner,
  type SkillState,
} from '../../domain/tracing/learner-states.js';
import { ApiError } from '../../errors.js';
import { waitForSlice } from '../../slices.js';
import { createGroupStore } from '../groups/group-store.js';
import { readStoredProfile } from '../groups/profile-store.js';
import { readPendingRecords } from '../outbox/pending-rows.js';
import { callPerSlot } from '../redis/commands/bulk-operations.js';
import { defineScript } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { eventIdsKey, itemTracesKey, learnerKey } from '../redis/keys.js';
import { createMessagePackReader, type MessagePackReader } from '../redis/wire/messagepack-reader.js';
import {
  decodeFirstResult,
  emptyIds,
  hashEventId,
  type LearnerIds,
  listIdFields,
  openIds,
  toStoredIds,
} from './event-ids.js';
import { decodeGoal } from './goals.js';
import { decodeItem } from './item-codec.js';
import { decodeLearner, goalField, learnerField } from './learner-codec.js';
import { type LearnerLocation, locateLearner } from './learner-commands.js';
import { decodeSkill } from './skill-codec.js';

/**
 * MessagePack is far cheaper to parse than a reply per field. Stops after the hash that reaches the given
 * number of fields and values.
 */
const readHashes = defineScript(
  null,
  'bytes',
)<[keys: number, ...args: (string | number)[]], Buffer>(`
local most, read, hashes = tonumber(ARGV[1]), 0, {}
for i = 1, #KEYS do
  hashes[i] = redis.call('HGETALL', KEYS[i])
  read = read + #hashes[i]
  if read >= most then break end
end
return cmsgpack.pack(hashes)
`);

/** Takes about a millisecond to unpack. */
const largeBytes = 64 * 1024;

/** About half a millisecond of Redis. */
const maxFieldsAndValues = 1500;

export interface LearnerStates {
  readonly learner: LearnerState;
  readonly skills: readonly (readonly [skillId: string, state: SkillState])[];
  readonly goalRecord: string | null;
}

export interface PackedLearner {
  /** Null for a learner without answers. @throws Error for records of another version */
  unpack(): LearnerStates | null;
  readonly bytes: number;
}

/** Each learner is read atomically. */
export const readPacked = (
  client: RedisClient,
  locations: readonly LearnerLocation[],
): Promise<PackedLearner[]> =>
  callPerSlot(client, locations, (group) => readPackedGroup(client, group.map(toLearnerKey)));

const toLearnerKey = ({ partition, tenant, userId }: LearnerLocation): string =>
  learnerKey(partition, tenant, userId);

/** A key of another type fails the script: then reads keys separately. */
async function readPackedGroup(client: RedisClient, keys: readonly string[]): Promise<PackedLearner[]> {
  const found: PackedLearner[] = [];
  try {
    while (found.length < keys.length) {
      const rest = keys.slice(found.length);
      found.push(...splitLearners(await readHashes(client, rest.length, ...rest, maxFieldsAndValues)));
    }
    return found;
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (keys.length > 1) return (await Promise.all(keys.map((key) => readPackedGroup(client, [key])))).flat();
    const unpack = () => {
      throw error;
    };
    return [{ unpack, bytes: 0 }];
  }
}

function splitLearners(packed: Buffer): PackedLearner[] {
  const reader = createMessagePackReader(packed);
  return Array.from({ length: reader.list() }, () => {
    const from = reader.position();
    for (let values = reader.list(); values > 0; values--) reader.skip();
    return {
      unpack: () => unpackLearner(createMessagePackReader(packed, from)),
      bytes: reader.position() - from,
    };
  });
}

function unpackLearner(reader: MessagePackReader): LearnerStates | null {
  let learner: LearnerState | null = null;
  let goalRecord: string | null = null;
  const skills: [string, SkillState][] = [];
  for (let fields = reader.list() / 2; fields > 0; fields--) {
    const field = reader.readText();
    const record = reader.readBytes();
    if (field === learnerField) learner = decodeLearner(record);
    else if (field === goalField) goalRecord = record.toString();
    else skills.push([field.slice(1), decodeSkill(record)]);
  }
  return learner && { learner, skills, goalRecord };
}

export async function readEventIds(
  client: RedisClient,
  { partition, tenant, userId }: LearnerLocation,
  eventIdHashes: readonly Buffer[],
): Promise<LearnerIds> {
  const fields = listIdFields(eventIdHashes);
  if (fields.length === 0) return openIds(emptyIds);
  const values = client.hmgetBuffer(eventIdsKey(partition, tenant, userId), ...fields);
  return openIds(toStoredIds(fields, await mapRedisErrors(values)));
}

export async function countSkills(client: RedisClient, location: LearnerLocation): Promise<number> {
  const key = toLearnerKey(location);
  const counts = [client.hlen(key), client.hexists(key, learnerField), client.hexists(key, goalField)];
  const [fields = 0, learner = 0, goal = 0] = await mapRedisErrors(Promise.all(counts));
  return fields - learner - goal;
}

export async function waitBeforeUnpacking({ bytes }: PackedLearner): Promise<void> {
  if (bytes > largeBytes) await waitForSlice();
}

export async function findLearner(
  client: RedisClient,
  location: LearnerLocation,
): Promise<LearnerStates | null> {
  const [packed] = (await readPacked(client, [location])) as [PackedLearner];
  await waitBeforeUnpacking(packed);
  return packed.unpack();
}

interface LearnerWithItems extends LearnerStates {
  /** By the id's hash in hex. */
  readonly items: ReadonlyMap<string, ItemRecord>;
}

export async function readWithItems(
  client: RedisClient,
  location: LearnerLocation,
): Promise<LearnerWithItems | null> {
  const { partition, tenant, userId } = location;
  const itemKeys = [0, 1].map((parity) => itemTracesKey(partition, parity, tenant, userId));
  const packed = await readHashes(client, 3, toLearnerKey(location), ...itemKeys, Number.MAX_SAFE_INTEGER);
  if (packed.length > largeBytes) await waitForSlice();
  const reader = createMessagePackReader(packed);
  reader.list();
  const found = unpackLearner(reader);
  return found && { ...found, items: unpackItems(reader, found.learner.items) };
}

/** One hash has the current generation, the other the previous one. */
function unpackItems(reader: MessagePackReader, { generation }: ItemWindow) {
  const items = new Map<string, ItemRecord>();
  for (const parity of [0, 1]) {
    const hashGeneration = generation % 2 === parity ? generation : generation - 1;
    for (let fields = reader.list() / 2; fields > 0; fields--) {
      const hash = reader.readBytes().toString('hex');
      const trace = decodeItem(reader.readBytes());
      if ((items.get(hash)?.generation ?? -1) < hashGeneration)
        items.set(hash, { generation: hashGeneration, trace });
    }
  }
  return items;
}

export async function readLearnerStates(client: RedisClient, location: LearnerLocation) {
  const found = await findLearner(client, location);
  return found && { ...found, skills: new Map(found.skills) };
}

export type LearnerReads = ReturnType<typeof createLearnerReads>;

/** Its functions throw ApiError UNAVAILABLE. */
export const createLearnerReads = (client: RedisClient, partitions: number) => ({
  read: (tenant: string, userId: string) =>
    readLearnerStates(client, locateLearner(tenant, userId, partitions)),
  readPacked: (tenant: string, userIds: readonly string[]) =>
    readPacked(
      client,
      userIds.map((userId) => locateLearner(tenant, userId, partitions)),
    ),
  /** Without the skills: a learner can have thousands. */
  readState: async (tenant: string, userId: string): Promise<LearnerState | null> => {
    const key = toLearnerKey(locateLearner(tenant, userId, partitions));
    const record = await mapRedisErrors(client.hgetBuffer(key, learnerField));
    return record && decodeLearner(record);
  },
});

export interface ExportedLearner {
  readonly learner: LearnerState;
  readonly records: readonly ExportRecord[];
}

export interface IdentifiedEvent {
  readonly eventId: string;
  readonly skillIds: NonEmpty<string>;
}

export type LearnerExport = ReturnType<typeof createLearnerExport>;

export function createLearnerExport(client: RedisClient, partitions: number) {
  return {
    /** Null without answers, goal, profile and group. */
    readState: async (tenant: string, userId: string): Promise<ExportedLearner | null> => {
      const location = locateLearner(tenant, userId, partitions);
      const found = await readWithItems(client, location);
      const others = await readProfileRecords(client, location);
      if (found !== null) return { learner: found.learner, records: [...toExportRecords(found), ...others] };
      const key = learnerKey(location.partition, tenant, userId);
      const goal = await mapRedisErrors(client.hget(key, goalField));
      // Also for a removed goal: ClickHouse still has its changes.
      if (goal === null && others.length === 0) return null;
      return { learner: newLearner, records: [...toGoalRecords(goal), ...others] };
    },
    readEventIds: async (tenant: string, userId: string, events: readonly IdentifiedEvent[]) => {
      const hashes = events.map(({ eventId }) => hashEventId(eventId));
      const ids = await readEventIds(client, locateLearner(tenant, userId, partitions), hashes);
      const second = Date.now() / 1000;
      return events.flatMap(({ eventId, skillIds }, i): ExportRecord[] => {
        const record = ids.find(hashes[i] as Buffer, second);
        if (record === null) return [];
        const { fingerprint, skills, advice } = decodeFirstResult(record, skillIds);
        const [first, ...further] = skills;
        const firstAnswer = { ...first, advice, furtherSkills: further };
        return [{ type: 'event_id', eventId, fingerprint: fingerprint.toString('hex'), firstAnswer }];
      });
    },
    readPending: (tenant: string, userId: string) => readPendingRecords(client, tenant, userId, partitions),
  };
}

async function readProfileRecords(client: RedisClient, { tenant, userId, partition }: LearnerLocation) {
  const [profile, groups] = await Promise.all([
    readStoredProfile(client, partition, { tenant, userId }),
    createGroupStore(client).findLearnerGroups(tenant, userId),
  ]);
  const records: ExportRecord[] = groups.map(({ groupId, name }) => ({ type: 'group', groupId, name }));
  if (profile !== null)
    records.unshift({ type: 'profile', ...profile, updatedAt: toIsoTime(profile.updatedAt) });
  return records;
}

function toGoalRecords(record: string | null): ExportRecord[] {
  const goal = decodeGoal(record);
  return goal === null ? [] : [{ type: 'goal', ...goal, updatedAt: toIsoTime(goal.updatedAt) }];
}

function toExportRecords({ learner, skills, goalRecord, items }: LearnerWithItems): ExportRecord[] {
  const { activity, trace, ...rest } = learner;
  const toSkillRecord = ([skillId, skill]: LearnerStates['skills'][number]): ExportRecord => {
    return { type: 'skill', skillId, ...skill, lastAttemptAt: toIsoTime(skill.lastAttemptAt) };
  };
  return [
    {
      type: 'learner',
      ...rest,
      // Format 1 of an export repeats the number of answers here.
      trace: { ...trace, course: { answers: learner.attempts, ...trace.course } },
      activity: { day: activity.day, halves: [...activity.halfAnswers] },
    },
    ...skills.map(toSkillRecord),
    ...toGoalRecords(goalRecord),
    ...Array.from(items, ([itemHash, { trace }]): ExportRecord => ({ type: 'item', itemHash, ...trace })),
  ];
}

const toIsoTime = (ms: number): string => new Date(ms).toISOString();
