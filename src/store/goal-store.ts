/** Goals: each a field of its learner's hash, so that whoever reads the learner has the goal too. */
import { goalRow } from '../contracts/journal.js';
import { unavailable } from '../errors.js';
import type { GoalStore, GoalWrite, GoalWritten, IfMatch } from '../services/ports.js';
import { type RedisClient, whileRedisServes } from './client.js';
import { changedAt, decodeGoal, encodeAfterTime, goalField, noGoal, tagOfGoal } from './goal-codec.js';
import { writeGoalScript } from './goal-scripts.js';
import { journalBound, journalKey, learnerKey, markerKey, partitionOf } from './keys.js';
import { replicated } from './replication.js';

/** @param bound most entries of a partition's journal */
export function createGoalStore(client: RedisClient, partitions: number, bound = journalBound): GoalStore {
  return {
    read: async (tenant, userId) => {
      const key = learnerKey(partitionOf(tenant, userId, partitions), tenant, userId);
      const value = await whileRedisServes(client.hget(key, goalField));
      const goal = decodeGoal(value);
      return value === null || goal === null ? null : { value: goal, tag: tagOfGoal(value) };
    },
    write: async (write) => {
      const partition = partitionOf(write.tenant, write.userId, partitions);
      const keys = [
        learnerKey(partition, write.tenant, write.userId),
        markerKey(partition),
        journalKey(partition),
      ];
      const reply = await replicated(client, markerKey(partition), () =>
        whileRedisServes(client.eval(writeGoalScript, 3, ...keys, ...argumentsOf(write, bound))),
      );
      const [status, value] = reply as [string, string];
      return writtenOf(status, value);
    },
  };
}

function argumentsOf(
  { tenant, userId, setting, ifMatch, now }: GoalWrite,
  bound: number,
): (string | number)[] {
  const mustExist = setting === null ? 1 : 0;
  const { targetScore, targetDate } = setting ?? noGoal;
  const row = goalRow({ tenant, userId, targetScore, targetDate });
  return [tagList(ifMatch), mustExist, now, encodeAfterTime(setting ?? noGoal), row, bound];
}

const tagList = (ifMatch: IfMatch): string => {
  if (ifMatch === null || ifMatch === '*') return ifMatch ?? '';
  return ` ${ifMatch.join(' ')} `;
};

function writtenOf(status: string, value: string): GoalWritten {
  if (status === 'mismatch' || status === 'absent') return { status };
  if (status === 'emptied') throw unavailable('The state store came back empty and has to be rebuilt first');
  if (status === 'full') throw unavailable('Too many changes wait to be stored; try again later');
  return { status: 'written', updatedAt: changedAt(value), tag: tagOfGoal(value) };
}
