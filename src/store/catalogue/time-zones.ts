/** Time zones of tenants. A catalogue's mark contains the zone, so every batch of answers sees the current one. */
import { Type } from 'typebox';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import { compareAndSetField, defineScript } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import { catalogueChangesKey, catalogueRevisionsKey, timeZonesKey } from '../redis/keys.js';
import { maxListedChanges } from './catalogue-store.js';

const TimeZoneChange = Type.Object({
  v: Type.Literal(1),
  timeZone: Type.String(),
  /** Unix milliseconds; increases with every change. */
  requestedAt: Type.Integer(),
  /** Null while learners still have another zone. */
  doneAt: Type.Union([Type.Integer(), Type.Null()]),
  /** Learners that the change rewrote; a run that was killed may miss some. */
  learners: Type.Integer(),
});
export type TimeZoneChange = Type.Static<typeof TimeZoneChange>;

const parseChange = createStoredParser(TimeZoneChange, 'a time zone');

/** Learners who are new after this see the zone. `change`: JSON before `requestedAt`, which orders all changes. */
const setZoneScript = defineScript(3)<
  [...keys: [string, string, string], tenant: string, now: number, zone: string, change: string],
  string
>(`
local mark = redis.call('HGET', KEYS[2], ARGV[1]) or '0 0'
local revision, last = string.match(mark, '^(%d+) (%d+)')
local now = string.format('%.0f', math.max(ARGV[2], last + 1))
revision = string.format('%.0f', revision + 1)
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4] .. now .. '}')
redis.call('HSET', KEYS[2], ARGV[1], revision .. ' ' .. now .. ' ' .. ARGV[3])
-- Names no skill: readers only take the mark.
redis.call('LPUSH', KEYS[3], revision .. ' ' .. now .. ' ')
redis.call('LTRIM', KEYS[3], 0, ${maxListedChanges} - 1)
return now
`);

export type TimeZoneStore = ReturnType<typeof createTimeZoneStore>;

export const createTimeZoneStore = (client: RedisClient) => ({
  /** Null: UTC since the beginning. */
  read: async (tenant: string): Promise<TimeZoneChange | null> => {
    const text = await mapRedisErrors(client.hget(timeZonesKey, tenant));
    return text === null ? null : parseChange(text);
  },
  /** Starts a change, also if the zone is the same. */
  set: async (tenant: string, timeZone: string, now: number): Promise<TimeZoneChange> => {
    const change = { v: 1, timeZone, doneAt: null, learners: 0 } as const;
    const text = `${JSON.stringify(change).slice(0, -1)},"requestedAt":`;
    const keys = [timeZonesKey, catalogueRevisionsKey, catalogueChangesKey(tenant)] as const;
    const requestedAt = await withReplication(client, timeZonesKey, () =>
      setZoneScript(client, ...keys, tenant, now, timeZone, text),
    );
    return { ...change, requestedAt: Number(requestedAt) };
  },
  /** Changes that are not done, by tenant. */
  listOpen: async (): Promise<(readonly [tenant: string, TimeZoneChange])[]> => {
    const all = await mapRedisErrors(client.hgetall(timeZonesKey));
    return Object.entries(all)
      .map(([tenant, text]) => [tenant, parseChange(text)] as const)
      .filter(([, { doneAt }]) => doneAt === null);
  },
  /** @returns false if another change replaced `before` */
  update: async (tenant: string, before: TimeZoneChange, after: TimeZoneChange): Promise<boolean> => {
    const texts = [JSON.stringify(before), JSON.stringify(after)] as const;
    return (await compareAndSetField(client, timeZonesKey, tenant, ...texts)) === 1;
  },
});
