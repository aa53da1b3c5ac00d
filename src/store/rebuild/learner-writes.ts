import type { ReplayedStates } from '../../domain/history/replay.js';
import { splitIntoParts } from '../../lists.js';
import type { IdFields } from '../learners/event-ids.js';
import { decodeLearner, goalField, learnerField } from '../learners/learner-codec.js';
import type { LearnerLocation } from '../learners/learner-commands.js';
import { dumpLearner, type HashFields, type LearnerDump } from '../learners/learner-dump.js';
import { callPerSlot } from '../redis/commands/bulk-operations.js';
import { executeAll, type RedisClient } from '../redis/connection/client.js';
import { eventIdsKey, itemTracesKey, learnerKey } from '../redis/keys.js';

const learnersPerCall = 200;

async function callInBatches<Item extends LearnerLocation, Result>(
  client: RedisClient,
  items: readonly Item[],
  call: (group: readonly Item[]) => Promise<Result[]>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const some of splitIntoParts(items, learnersPerCall))
    results.push(...(await callPerSlot(client, some, call)));
  return results;
}

/**
 * No other process writes these learners, because their partition is not restored yet. Also removes the goal, which
 * `restoreGoals` writes again. Learners without rows stay.
 */
export async function writeReplayedLearners(
  client: RedisClient,
  learners: readonly (LearnerLocation & { readonly states: ReplayedStates; readonly ids: IdFields })[],
): Promise<void> {
  await callInBatches(client, learners, async (group) => {
    const commands = client.pipeline();
    const write = (key: string, fields: HashFields | IdFields): void => {
      commands.unlink(key);
      if (fields.length > 0) commands.hset(key, ...fields.flat());
    };
    for (const { partition, tenant, userId, states, ids } of group) {
      const { records, items } = dumpLearner(states);
      write(learnerKey(partition, tenant, userId), records);
      for (const parity of [0, 1] as const)
        write(itemTracesKey(partition, parity, tenant, userId), items[parity]);
      write(eventIdsKey(partition, tenant, userId), ids);
    }
    await executeAll(commands);
    return [];
  });
}

export const readLearnerDumps = (
  client: RedisClient,
  locations: readonly LearnerLocation[],
): Promise<LearnerDump[]> =>
  callInBatches(client, locations, async (group) => {
    const commands = client.multi();
    for (const { partition, tenant, userId } of group) {
      commands.callBuffer('HGETALL', learnerKey(partition, tenant, userId));
      for (const parity of [0, 1])
        commands.callBuffer('HGETALL', itemTracesKey(partition, parity, tenant, userId));
    }
    const hashes = ((await executeAll(commands)) as Buffer[][]).map(toFields);
    return group.map((_, i) => ({
      records: hashes[3 * i] ?? [],
      items: [hashes[3 * i + 1] ?? [], hashes[3 * i + 2] ?? []],
    }));
  });

const toFields = (flat: readonly Buffer[]): HashFields => splitIntoParts(flat, 2) as [Buffer, Buffer][];

/** @returns null if equal, `ahead` if Redis has more answers, else the difference */
export function describeDifference(states: ReplayedStates, stored: LearnerDump | null): string | null {
  const storedRecord = stored?.records.find(([field]) => field.toString() === learnerField)?.[1];
  if (stored === null || storedRecord === undefined) return 'is missing in Redis';
  const { attempts: replayed } = states.learner;
  try {
    const { attempts } = decodeLearner(storedRecord);
    if (attempts > replayed) return 'ahead';
    if (attempts < replayed) return `has ${attempts} answers in Redis and ${replayed} in ClickHouse`;
  } catch (error) {
    return `is unreadable: ${error instanceof Error ? error.message : String(error)}`;
  }
  const [expected, found] = [collectParts(dumpLearner(states)), collectParts(stored)];
  // Rows do not contain the goal.
  found.delete(goalField);
  const part = [...found.keys(), ...expected.keys()].find((name) => expected.get(name) !== found.get(name));
  if (part === undefined) return null;
  if (part === learnerField) return 'differs in the learner record';
  return part.startsWith(itemPrefix) ? 'differs in the item records' : `differs in skill ${part.slice(1)}`;
}

/** No field of the records starts with this prefix. */
const itemPrefix = 'items ';

function collectParts({ records, items }: LearnerDump): Map<string, string> {
  const parts = new Map(records.map(([field, value]) => [`${field}`, value.toString('hex')]));
  for (const [parity, fields] of items.entries())
    for (const [hash, value] of fields)
      parts.set(`${itemPrefix}${parity}${hash.toString('hex')}`, value.toString('hex'));
  return parts;
}
