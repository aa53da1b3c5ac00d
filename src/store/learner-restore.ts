/** Writes learners as a rebuild finds them. Nobody else writes them: their partition is not restored yet. */
import type { ReplayedStates } from '../domain/replay.js';
import { type RedisClient, resultsOf, whileRedisServes } from './client.js';
import { bucketOf } from './id-buckets.js';
import { idBucketKey, itemTracesKey, learnerKey } from './keys.js';
import { dumpOf, type Fields } from './learner-dump.js';
import { perCall } from './learner-store.js';

export interface RestoredLearner {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  readonly states: ReplayedStates;
  /** By the hash of the event id. */
  readonly firstAnswers: readonly (readonly [id: Buffer, answer: Buffer])[];
}

/** Learners of one write: Redis does nothing else meanwhile. */
const together = 200;

/**
 * All of each learner, whatever was there; doing it again does nothing.
 * @param buckets of event ids, by partition
 */
export async function restoreLearners(
  client: RedisClient,
  learners: readonly RestoredLearner[],
  buckets: Readonly<Record<number, number>>,
): Promise<void> {
  for (let at = 0; at < learners.length; at += together) {
    await perCall(client, learners.slice(at, at + together), async (group) => {
      const commands = client.pipeline();
      for (const learner of group) writeLearner(commands, learner, buckets[learner.partition] ?? 1);
      await whileRedisServes(resultsOf(commands));
      return [];
    });
  }
}

type Commands = ReturnType<RedisClient['pipeline']>;

function writeLearner(commands: Commands, learner: RestoredLearner, buckets: number): void {
  const { partition, tenant, userId, states, firstAnswers } = learner;
  const { records, items } = dumpOf(states);
  writeHash(commands, learnerKey(partition, tenant, userId), records);
  for (const parity of [0, 1] as const)
    writeHash(commands, itemTracesKey(partition, parity, tenant, userId), items[parity]);
  for (const [id, answer] of firstAnswers)
    commands.hset(idBucketKey(partition, bucketOf(id, buckets)), id, answer);
}

function writeHash(commands: Commands, key: string, fields: Fields): void {
  commands.unlink(key);
  if (fields.length > 0) commands.hset(key, ...fields.flat());
}
