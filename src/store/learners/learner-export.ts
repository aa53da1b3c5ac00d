/** What Redis holds of one learner beside answers, as records of an export. */
import type { ExportRecord } from '../../contracts/export-record.js';
import { type LearnerState, newLearner } from '../../domain/tracing/states.js';
import { waitingRecords } from '../outbox/waiting-rows.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { itemTracesKey, learnerKey, partitionOf } from '../redis/keys.js';
import { decodeFirstAnswer, hashEventId } from './event-ids.js';
import { decodeGoal, goalField } from './goals.js';
import { decodeItem } from './learner-codec.js';
import type { Placed } from './learner-commands.js';
import { type FoundLearner, findLearner, readIds } from './learner-reads.js';

export interface ExportedLearner {
  readonly learner: LearnerState;
  readonly records: readonly ExportRecord[];
}

export type LearnerRecords = ReturnType<typeof createLearnerRecords>;

/** Its functions throw ApiError UNAVAILABLE. */
export function createLearnerRecords(client: RedisClient, partitions: number) {
  const placeOf = (tenant: string, userId: string): Placed => {
    const partition = partitionOf(tenant, userId, partitions);
    return { partition, tenant, userId };
  };

  return {
    /** States, skills, items and goal, as of one moment each; null for who has no counted answer and never had a goal. */
    state: async (tenant: string, userId: string): Promise<ExportedLearner | null> => {
      const place = placeOf(tenant, userId);
      const found = await findLearner(client, place);
      if (found !== null) {
        const items = [...(await itemsOf(client, place, 0)), ...(await itemsOf(client, place, 1))];
        return { learner: found.learner, records: [...recordsOf(found), ...items] };
      }
      const key = learnerKey(place.partition, tenant, userId);
      const goal = await whileRedisServes(client.hget(key, goalField));
      // Tables have a goal that was deleted.
      return goal === null ? null : { learner: newLearner, records: goalOf(goal) };
    },
    /** What is remembered of event ids; nothing of those that are forgotten. */
    remembered: async (tenant: string, userId: string, eventIds: readonly string[]) => {
      const hashes = eventIds.map(hashEventId);
      const ids = await readIds(client, placeOf(tenant, userId), hashes);
      const second = Date.now() / 1000;
      return eventIds.flatMap((eventId, i): ExportRecord[] => {
        const record = ids.find(hashes[i] as Buffer, second);
        if (record === null) return [];
        const { fingerprint, ...firstAnswer } = decodeFirstAnswer(record);
        return [{ type: 'event_id', eventId, fingerprint: fingerprint.toString('hex'), firstAnswer }];
      });
    },
    /** Changes of the goal and served forecasts that ClickHouse does not have yet. */
    waiting: (tenant: string, userId: string) => waitingRecords(client, tenant, userId, partitions),
  };
}

function goalOf(record: string | null): ExportRecord[] {
  const goal = decodeGoal(record);
  return goal === null ? [] : [{ type: 'goal', ...goal, updatedAt: timeOf(goal.updatedAt) }];
}

function recordsOf({ learner, skills, goalRecord }: FoundLearner): ExportRecord[] {
  const { activity, ...rest } = learner;
  const skillOf = ([skillId, skill]: FoundLearner['skills'][number]): ExportRecord => {
    return { type: 'skill', skillId, ...skill, lastAttemptAt: timeOf(skill.lastAttemptAt) };
  };
  return [
    { type: 'learner', ...rest, activity: { day: activity.day, halves: [...activity.halves] } },
    ...skills.map(skillOf),
    ...goalOf(goalRecord),
  ];
}

const timeOf = (ms: number): string => new Date(ms).toISOString();

/** Items are known by a hash of their id alone. */
async function itemsOf(client: RedisClient, place: Placed, parity: number): Promise<ExportRecord[]> {
  const key = itemTracesKey(place.partition, parity, place.tenant, place.userId);
  const traces = await whileRedisServes(client.hvalsBuffer(key));
  const hashes = await whileRedisServes(client.hkeysBuffer(key));
  return hashes.flatMap((hash, i) => {
    const trace = traces[i];
    return trace ? [{ type: 'item', itemHash: hash.toString('hex'), ...decodeItem(trace) }] : [];
  });
}
