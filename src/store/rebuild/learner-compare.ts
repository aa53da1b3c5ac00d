/** Compares learners as they are stored with what their rows give. */

import type { ReplayedStates } from '../../domain/history/replay.js';
import type { LearnerState } from '../../domain/tracing/states.js';
import { goalField } from '../learners/goals.js';
import { decodeLearner } from '../learners/learner-codec.js';
import { dumpOf, type Fields, type LearnerDump } from '../learners/learner-dump.js';
import { learnerField, type Placed } from '../learners/learner-records.js';
import { type RedisClient, resultsOf, whileRedisServes } from '../redis/client.js';
import { perCall } from '../redis/fan-out.js';
import { itemTracesKey, learnerKey } from '../redis/keys.js';

/** Learners that are read at a time. */
const together = 200;

/** All that is stored of each, as of one moment; in order. */
export async function readDumps(client: RedisClient, places: readonly Placed[]): Promise<LearnerDump[]> {
  const dumps: LearnerDump[] = [];
  for (let at = 0; at < places.length; at += together)
    dumps.push(...(await perCall(client, places.slice(at, at + together), (group) => read(client, group))));
  return dumps;
}

async function read(client: RedisClient, places: readonly Placed[]): Promise<LearnerDump[]> {
  const commands = client.multi();
  for (const { partition, tenant, userId } of places) {
    commands.callBuffer('HGETALL', learnerKey(partition, tenant, userId));
    for (const parity of [0, 1])
      commands.callBuffer('HGETALL', itemTracesKey(partition, parity, tenant, userId));
  }
  const hashes = ((await whileRedisServes(resultsOf(commands))) as Buffer[][]).map(fieldsOf);
  return places.map((_, i) => ({
    records: hashes[3 * i] ?? [],
    items: [hashes[3 * i + 1] ?? [], hashes[3 * i + 2] ?? []],
  }));
}

const fieldsOf = (flat: readonly Buffer[]): Fields =>
  flat.flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1] as Buffer] as const] : []));

/**
 * @param states from the rows
 * @returns null where they are the same; `behind` where more answers were counted than the rows have; else what differs
 */
export function differenceOf(states: ReplayedStates, stored: LearnerDump | null): string | null {
  const own = stored?.records.find(([field]) => field.toString() === learnerField)?.[1];
  if (stored === null || own === undefined) return 'is not in Redis';
  try {
    return difference(states, stored, decodeLearner(own));
  } catch (error) {
    return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function difference(states: ReplayedStates, stored: LearnerDump, { attempts }: LearnerState): string | null {
  if (attempts > states.learner.attempts) return 'behind';
  if (attempts < states.learner.attempts)
    return `has ${attempts} answers in Redis and ${states.learner.attempts} stored`;
  return differingPart(dumpOf(states), stored);
}

function differingPart(expected: LearnerDump, stored: LearnerDump): string | null {
  // The goal is nobody's to replay.
  const records = stored.records.filter(([field]) => field.toString() !== goalField);
  const field = differingField(expected.records, records);
  if (field === learnerField) return 'differs in its own record';
  if (field !== null) return `differs in skill ${field.slice(1)}`;
  const same = [0, 1].every((parity) => {
    const [wanted, found] = [expected.items[parity], stored.items[parity]];
    return differingField(wanted ?? [], found ?? []) === null;
  });
  return same ? null : 'differs in its items';
}

function differingField(expected: Fields, stored: Fields): string | null {
  const wanted = new Map(expected.map(([field, value]) => [field.toString('hex'), value]));
  for (const [field, value] of stored) {
    if (!wanted.get(field.toString('hex'))?.equals(value)) return field.toString();
    wanted.delete(field.toString('hex'));
  }
  const [missing] = wanted.keys();
  return missing === undefined ? null : Buffer.from(missing, 'hex').toString();
}
