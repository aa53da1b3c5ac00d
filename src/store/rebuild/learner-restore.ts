/** Writes learners as a rebuild finds them. Nobody else writes them: their partition is not restored yet. */
import type { ReplayedStates } from '../../domain/history/replay.js';
import { dumpOf, type Fields } from '../learners/learner-dump.js';
import type { IdFields } from '../learners/learner-ids.js';
import { type RedisClient, resultsOf, whileRedisServes } from '../redis/client.js';
import { perCall } from '../redis/fan-out.js';
import { eventIdsKey, itemTracesKey, learnerKey } from '../redis/keys.js';

export interface RestoredLearner {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  readonly states: ReplayedStates;
  readonly ids: IdFields;
}

/** Learners of one write: Redis does nothing else meanwhile. */
const together = 200;

/** All of each learner, whatever was there; doing it again does nothing. */
export async function restoreLearners(
  client: RedisClient,
  learners: readonly RestoredLearner[],
): Promise<void> {
  for (let at = 0; at < learners.length; at += together) {
    await perCall(client, learners.slice(at, at + together), async (group) => {
      const commands = client.pipeline();
      for (const learner of group) writeLearner(commands, learner);
      await whileRedisServes(resultsOf(commands));
      return [];
    });
  }
}

type Commands = ReturnType<RedisClient['pipeline']>;

function writeLearner(commands: Commands, learner: RestoredLearner): void {
  const { partition, tenant, userId, states, ids } = learner;
  const { records, items } = dumpOf(states);
  writeHash(commands, learnerKey(partition, tenant, userId), records);
  for (const parity of [0, 1] as const)
    writeHash(commands, itemTracesKey(partition, parity, tenant, userId), items[parity]);
  writeHash(commands, eventIdsKey(partition, tenant, userId), ids);
}

function writeHash(commands: Commands, key: string, fields: Fields | IdFields): void {
  commands.unlink(key);
  if (fields.length > 0) commands.hset(key, ...fields.flat());
}
