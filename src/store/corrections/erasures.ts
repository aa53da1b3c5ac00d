import { randomUUID } from 'node:crypto';
import Type from 'typebox';
import { type CorrectedRows, RemovalCounts } from '../../contracts/corrections/corrections.js';
import { hashLearner, learnerName } from '../../contracts/learners/learner-name.js';
import { toFirstRowId } from '../../contracts/outbox/outbox-ids.js';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import { createWebhookEvent, toStreamFields } from '../../contracts/webhooks/webhook-events.js';
import { indices } from '../../lists.js';
import { readHash, type UnreadableHandler } from '../redis/commands/bulk-operations.js';
import { acquirePeriodicRun } from '../redis/commands/lock.js';
import { defineScript, nowLua } from '../redis/commands/script.js';
import { appendEventsLua } from '../redis/commands/webhook-events.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import { erasuresKey, markerName, partitionOf, partitionPrefix } from '../redis/keys.js';
import { createErasedLearners } from './erased-learners.js';

const StoredErasure = Type.Object({
  v: Type.Literal(1),
  tenant: Type.String(),
  userId: Type.String(),
  /** Unix milliseconds, Redis' clock. */
  requestedAt: Type.Integer(),
  /** Outbox id that separates earlier rows from later ones. */
  correction: Type.String(),
  /** Unix milliseconds of the learner's last goal; 0: none. */
  goalAt: Type.Integer(),
  removed: Type.Object({ records: Type.Integer(), items: Type.Integer() }),
  /** Absent before counting, and after the correction was applied. `at`: Unix milliseconds. */
  plan: Type.Optional(Type.Object({ at: Type.Integer(), removal: RemovalCounts })),
  /** Rows per table. Absent until the correction is applied. */
  before: Type.Optional(RemovalCounts.properties.before),
});
const parseErasure = createStoredParser(StoredErasure, 'an erasure');

export type OpenErasure = ReturnType<typeof decodeErasure>;

/** `open`: an erasure with this id is not done, and the learner has no new data. */
export type ErasureStart =
  | { readonly status: 'begun' | 'open'; readonly id: string }
  | { readonly status: 'absent' | 'full' | 'lost' };

export type ErasureStore = ReturnType<typeof createErasureStore>;

/** Per partition. */
export const maxOpenErasures = 10_000;
/** Per partition: 15 MB. */
const maxErasedLearners = 100_000;

/** Redis key and seconds. `purge`: remove deleted rows from disk. `look`: search for late rows. */
const periodicRuns = { purge: ['st:purged', 86_400], look: ['st:erased:looked', 3600] } as const;

/** Starts with the partition. */
const idPattern = /^(\d{1,5})-[0-9a-f-]{36}$/;

export function createErasureStore(
  client: RedisClient,
  partitions: number,
  onUnreadable?: UnreadableHandler,
) {
  async function listOpenIn(partition: number): Promise<OpenErasure[]> {
    const decode = (id: string, text: string) =>
      id.startsWith('@') ? null : decodeErasure(id, partition, text);
    const all = await readHash(client, erasuresKey(partition), decode, onUnreadable);
    return [...all.values()].filter((one) => one !== null);
  }
  const listOpen = async (): Promise<OpenErasure[]> =>
    (await Promise.all(indices(partitions).map(listOpenIn))).flat();

  return {
    ...createErasedLearners(client, partitions),
    /** Atomic: deletes the learner's states and records the erasure. @param isMember of a group */
    begin: async (tenant: string, userId: string, isMember: boolean): Promise<ErasureStart> => {
      const partition = partitionOf(tenant, userId, partitions);
      const erasureId = `${partition}-${randomUUID()}`;
      const record = JSON.stringify({ v: 1, tenant, userId });
      const prefix = partitionPrefix(partition);
      const [status, id] = await withReplication(client, prefix, () =>
        eraseLearnerScript(
          ...([client, prefix, learnerName(tenant, userId), erasureId, record] as const),
          ...([maxOpenErasures, hashLearner(tenant, userId), maxErasedLearners, isMember ? 1 : 0] as const),
        ),
      );
      return (id === '' ? { status } : { status, id }) as ErasureStart;
    },
    find: async (id: string): Promise<OpenErasure | null> => {
      const partition = Number(idPattern.exec(id)?.[1] ?? partitions);
      if (partition >= partitions) return null;
      const text = await mapRedisErrors(client.hget(erasuresKey(partition), id));
      return text === null ? null : decodeErasure(id, partition, text);
    },
    /** While true, ClickHouse may still have erased rows. */
    isOpen: async (tenant: string, userId: string): Promise<boolean> => {
      const key = erasuresKey(partitionOf(tenant, userId, partitions));
      return (await mapRedisErrors(client.hexists(key, `@${learnerName(tenant, userId)}`))) === 1;
    },
    open: listOpen,
    listOpenOf: async (tenant: string) => (await listOpen()).filter(({ rows }) => rows.tenant === tenant),
    /** @returns false if already closed or due again */
    close: async (
      { id, rows: { tenant, userId, partition } }: OpenErasure,
      doneAt: number,
    ): Promise<boolean> => {
      const event = createWebhookEvent('erasure.completed', tenant, null, doneAt, { erasure_id: id });
      const args = [id, learnerName(tenant, userId), ...toStreamFields(event)] as const;
      return (await closeErasureScript(client, partitionPrefix(partition), ...args)) === 1;
    },
    acquirePeriodicRun: (run: keyof typeof periodicRuns): Promise<boolean> =>
      acquirePeriodicRun(client, periodicRuns[run][0], periodicRuns[run][1]),
  };
}

/** @throws Error for another version */
export function decodeErasure(id: string, partition: number, text: string) {
  const stored = parseErasure(text);
  const { tenant, userId, goalAt, correction, requestedAt, removed, plan = null, before = null } = stored;
  const below = toFirstRowId(correction);
  const rows: CorrectedRows = { tenant, userId, partition, below, fromSeq: 0, goalAt };
  return { id, rows, requestedAt, removed, plan, before };
}

/** `record`: JSON that the script completes. */
export const eraseLearnerScript = defineScript(1)<
  [
    ...[prefix: string, name: string, id: string, record: string],
    ...[maxOpen: number, hash: string, maxErased: number, isMember: 0 | 1],
  ],
  [status: string, id: string]
>(`
${nowLua}
local prefix, name, id = KEYS[1], ARGV[1], ARGV[2]
local erasures, key, profile = prefix .. ':erasures', prefix .. ':l:' .. name, prefix .. ':u:' .. name
if redis.call('EXISTS', prefix .. ':${markerName}') == 0 then return { 'lost', '' } end
local profiles = redis.call('EXISTS', profile)
local isKnown = ARGV[7] == '1' or profiles == 1
if not isKnown and redis.call('HEXISTS', key, 'L') == 0 and redis.call('HEXISTS', key, 'G') == 0 then
  local open = redis.call('HGET', erasures, '@' .. name)
  return { open and 'open' or 'absent', open or '' }
end
local ended, hash = prefix .. ':erased', ARGV[5]
local earlier = redis.call('HGET', ended, hash)
if redis.call('HLEN', erasures) >= 2 * tonumber(ARGV[4]) then return { 'full', '' } end
if not earlier and redis.call('HLEN', ended) >= tonumber(ARGV[6]) then return { 'full', '' } end
local record = cjson.decode(ARGV[3])
local goal = redis.call('HGET', key, 'G')
local items = redis.call('HLEN', prefix .. ':h0:' .. name) + redis.call('HLEN', prefix .. ':h1:' .. name)
record.removed = { records = redis.call('HLEN', key) + profiles, items = items }
record.goalAt = goal and tonumber(string.match(goal, '"updatedAt":(%d+)')) or 0
record.requestedAt = tonumber(now())
redis.call('DEL', key, profile, prefix .. ':e:' .. name, prefix .. ':h0:' .. name, prefix .. ':h1:' .. name)
redis.call('HDEL', prefix .. ':goal:alerts', name)
redis.call('ZREM', prefix .. ':goal:checks', name, '!' .. name)
-- The outbox id separates earlier rows from later rows.
record.correction = redis.call('XADD', prefix .. ':out', '*', 'c', '')
redis.call('XDEL', prefix .. ':out', record.correction)
redis.call('XADD', prefix .. ':due', record.correction, 'c', id)
redis.call('HSET', erasures, id, cjson.encode(record), '@' .. name, id)
redis.call('HSET', ended, hash, cjson.encode({
  v = 1, tenant = record.tenant, at = record.requestedAt, correction = record.correction, looks = 0,
  goalAt = math.max(record.goalAt, earlier and cjson.decode(earlier).goalAt or 0),
}))
return { 'begun', id }
`);

/**
 * Does not close an erasure that is due again after a failover. A later erasure of the same learner stays
 * open.
 */
const closeErasureScript = defineScript(1)<
  [prefix: string, id: string, name: string, ...event: string[]],
  0 | 1
>(`
${appendEventsLua}
local erasures, field = KEYS[1] .. ':erasures', '@' .. ARGV[2]
local stored = redis.call('HGET', erasures, ARGV[1])
if not stored or not cjson.decode(stored).before then return 0 end
if redis.call('HGET', erasures, field) == ARGV[1] then redis.call('HDEL', erasures, field) end
redis.call('HDEL', erasures, ARGV[1])
appendEvents(KEYS[1] .. ':events', 3)
return 1
`);
