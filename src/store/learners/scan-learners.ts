import type { LearnerId } from '../../contracts/learners/learner-name.js';
import { scanKeys, sendCommands } from '../redis/commands/bulk-operations.js';
import type { RedisClient } from '../redis/connection/client.js';
import { learnerField } from './learner-codec.js';

const namePattern = /^st:\{p\d+\}:l:([^:]+):(.*)$/s;

/** Pages of learners with answers. A learner may appear twice. @param tenant *: all */
export async function* scanLearners(client: RedisClient, tenant = '*'): AsyncGenerator<LearnerId[]> {
  for await (const [node, keys] of scanKeys(client, `st:{p*}:l:${tenant}:*`)) {
    const commands = keys.map((key) => ['hexists', key, learnerField] as const);
    const found = await sendCommands<number>(node, commands);
    yield keys.flatMap((key, i) => {
      const [, tenant, userId] = namePattern.exec(key) ?? [];
      const isLearner = found[i] === 1 && tenant !== undefined && userId !== undefined;
      return isLearner ? [{ tenant, userId }] : [];
    });
  }
}
