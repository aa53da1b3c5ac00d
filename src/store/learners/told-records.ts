/** What Redis holds of one learner, told as plain records. */
import { newLearner } from '../../domain/tracing/mastery.js';
import type { LearnerRecords, ToldLearner, ToldRecord } from '../../services/read/export-ports.js';
import { waitingRecords } from '../outbox/waiting-records.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { itemTracesKey, learnerKey, partitionOf } from '../redis/keys.js';
import { decodeFirstAnswer, hashEventId } from './event-ids.js';
import { decodeGoal, goalField } from './goal-codec.js';
import { decodeItem } from './learner-codec.js';
import { type FoundLearner, readIds, readPacked } from './learner-reads.js';
import type { Placed } from './learner-records.js';

export function createLearnerRecords(client: RedisClient, partitions: number): LearnerRecords {
  const placeOf = (tenant: string, userId: string): Placed => ({
    partition: partitionOf(tenant, userId, partitions),
    tenant,
    userId,
  });

  return {
    state: async (tenant, userId) => {
      const place = placeOf(tenant, userId);
      const [packed] = await readPacked(client, [place]);
      const found = packed?.unpack() ?? null;
      if (found === null) return goalAlone(client, place);
      const items = [...(await itemsOf(client, place, 0)), ...(await itemsOf(client, place, 1))];
      return { learner: found.learner, records: [...recordsOf(found), ...items] };
    },
    remembered: async (tenant, userId, eventIds) => {
      const hashes = eventIds.map(hashEventId);
      const ids = await readIds(client, placeOf(tenant, userId), hashes);
      const second = Date.now() / 1000;
      return eventIds.flatMap((eventId, i) => remembered(eventId, ids.find(hashes[i] as Buffer, second)));
    },
    waiting: (tenant, userId) => waitingRecords(client, placeOf(tenant, userId), partitions),
  };
}

/** Of a learner without a counted answer. A goal that was taken away is none, but tables tell of it. */
async function goalAlone(
  client: RedisClient,
  { partition, tenant, userId }: Placed,
): Promise<ToldLearner | null> {
  const key = learnerKey(partition, tenant, userId);
  const record = await whileRedisServes(client.hget(key, goalField));
  return record === null ? null : { learner: newLearner, records: goalOf(record) };
}

function goalOf(record: string | null): ToldRecord[] {
  const goal = decodeGoal(record);
  return goal === null ? [] : [{ type: 'goal', ...goal, updatedAt: timeOf(goal.updatedAt) }];
}

function recordsOf({ learner, skills, goalRecord }: FoundLearner): ToldRecord[] {
  const { activity, ...rest } = learner;
  return [
    { type: 'learner', ...rest, activity: { day: activity.day, halves: [...activity.halves] } },
    ...skills.map(skillOf),
    ...goalOf(goalRecord),
  ];
}

const skillOf = ([skillId, skill]: FoundLearner['skills'][number]): ToldRecord => ({
  type: 'skill',
  skillId,
  ...skill,
  lastAttemptAt: timeOf(skill.lastAttemptAt),
});

const timeOf = (ms: number): string => new Date(ms).toISOString();

/** Items are kept by a hash of their id alone. */
async function itemsOf(client: RedisClient, place: Placed, parity: number): Promise<ToldRecord[]> {
  const key = itemTracesKey(place.partition, parity, place.tenant, place.userId);
  const traces = await whileRedisServes(client.hvalsBuffer(key));
  const hashes = await whileRedisServes(client.hkeysBuffer(key));
  return hashes.flatMap((hash, i) => {
    const trace = traces[i];
    return trace ? [{ type: 'item', itemHash: hash.toString('hex'), ...decodeItem(trace) }] : [];
  });
}

function remembered(eventId: string, record: Buffer | null): ToldRecord[] {
  if (record === null) return [];
  const { fingerprint, ...firstAnswer } = decodeFirstAnswer(record);
  return [{ type: 'event_id', eventId, fingerprint: fingerprint.toString('hex'), firstAnswer }];
}
