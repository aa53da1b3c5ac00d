import type { ReplayedStates } from '../../domain/history/replay.js';
import { splitIntoParts } from '../../lists.js';
import type { IdFields } from '../learners/event-ids.js';
import { decodeLearner, goalField, learnerField } from '../learners/learner-codec.js';
import type { Placed } from '../learners/learner-commands.js';
import { dumpOf, type Fields, type LearnerDump } from '../learners/learner-dump.js';
import { type RedisClient, resultsOf } from '../redis/client.js';
import { eventIdsKey, itemTracesKey, learnerKey } from '../redis/keys.js';
import { perCall } from '../redis/reads.js';

const together = 200;

async function inCalls<Item extends Placed, Result>(
  client: RedisClient,
  items: readonly Item[],
  call: (group: readonly Item[]) => Promise<Result[]>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const some of splitIntoParts(items, together)) results.push(...(await perCall(client, some, call)));
  return results;
}

/** No other process writes these learners, because their partition is not restored yet. */
export async function restoreLearners(
  client: RedisClient,
  learners: readonly (Placed & { readonly states: ReplayedStates; readonly ids: IdFields })[],
): Promise<void> {
  await inCalls(client, learners, async (group) => {
    const commands = client.pipeline();
    const write = (key: string, fields: Fields | IdFields): void => {
      commands.unlink(key);
      if (fields.length > 0) commands.hset(key, ...fields.flat());
    };
    for (const { partition, tenant, userId, states, ids } of group) {
      const { records, items } = dumpOf(states);
      write(learnerKey(partition, tenant, userId), records);
      for (const parity of [0, 1] as const)
        write(itemTracesKey(partition, parity, tenant, userId), items[parity]);
      write(eventIdsKey(partition, tenant, userId), ids);
    }
    await resultsOf(commands);
    return [];
  });
}

export const readDumps = (client: RedisClient, places: readonly Placed[]): Promise<LearnerDump[]> =>
  inCalls(client, places, async (group) => {
    const commands = client.multi();
    for (const { partition, tenant, userId } of group) {
      commands.callBuffer('HGETALL', learnerKey(partition, tenant, userId));
      for (const parity of [0, 1])
        commands.callBuffer('HGETALL', itemTracesKey(partition, parity, tenant, userId));
    }
    const hashes = ((await resultsOf(commands)) as Buffer[][]).map(fieldsOf);
    return group.map((_, i) => ({
      records: hashes[3 * i] ?? [],
      items: [hashes[3 * i + 1] ?? [], hashes[3 * i + 2] ?? []],
    }));
  });

const fieldsOf = (flat: readonly Buffer[]): Fields => splitIntoParts(flat, 2) as [Buffer, Buffer][];

/** @returns null if equal, `behind` if Redis has more answers, else the difference */
export function differenceOf(states: ReplayedStates, stored: LearnerDump | null): string | null {
  const own = stored?.records.find(([field]) => field.toString() === learnerField)?.[1];
  if (stored === null || own === undefined) return 'is not in Redis';
  const { attempts: replayed } = states.learner;
  try {
    const { attempts } = decodeLearner(own);
    if (attempts > replayed) return 'behind';
    if (attempts < replayed) return `has ${attempts} answers in Redis and ${replayed} stored`;
  } catch (error) {
    return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
  const [wanted, found] = [partsOf(dumpOf(states)), partsOf(stored)];
  // Rows do not contain the goal.
  found.delete(goalField);
  const part = [...found.keys(), ...wanted.keys()].find((name) => wanted.get(name) !== found.get(name));
  if (part === undefined) return null;
  if (part === learnerField) return 'differs in its own record';
  return part.startsWith(itemMark) ? 'differs in its items' : `differs in skill ${part.slice(1)}`;
}

/** No field of the records starts with this prefix. */
const itemMark = 'items ';

function partsOf({ records, items }: LearnerDump): Map<string, string> {
  const parts = new Map(records.map(([field, value]) => [`${field}`, value.toString('hex')]));
  for (const [parity, fields] of items.entries())
    for (const [hash, value] of fields)
      parts.set(`${itemMark}${parity}${hash.toString('hex')}`, value.toString('hex'));
  return parts;
}
