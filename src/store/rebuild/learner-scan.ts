/** Looks through all of Redis for learners and their rows, for comparing them with ClickHouse. */
import { unescapeText } from '../../contracts/attempt-row.js';
import type { LearnerPlace } from '../../contracts/learner-name.js';
import { learnerField } from '../learners/learner-codec.js';
import { type RedisClient, resultsOf, whileRedisServes } from '../redis/client.js';
import { learnerKey, outboxKey, parkedKey, partitionOf } from '../redis/keys.js';
import { fieldOf, scanKeys, streamPages } from '../redis/reads.js';

const learnerPattern = 'st:{p*}:l:*';
const namePattern = /^st:\{p\d+\}:l:([^:]+):(.*)$/s;

/** Learners with answers: one with a goal alone has none. One that is written meanwhile may come twice. */
export async function* scanLearners(client: RedisClient): AsyncGenerator<LearnerPlace[]> {
  for await (const [node, keys] of scanKeys(client, learnerPattern)) {
    const commands = node.pipeline();
    for (const key of keys) commands.hexists(key, learnerField);
    const found = await whileRedisServes(resultsOf(commands));
    yield keys.flatMap((key, i) => (found[i] === 1 ? placeOf(key) : []));
  }
}

function placeOf(key: string): LearnerPlace[] {
  const [, tenant, userId] = namePattern.exec(key) ?? [];
  return tenant === undefined || userId === undefined ? [] : [{ tenant, userId }];
}

const entriesTogether = 500;

/** The learners' rows in outboxes, and among those that were parked; in no order. */
export async function waitingRows(
  client: RedisClient,
  learners: readonly LearnerPlace[],
  count: number,
): Promise<string[]> {
  const partitions = new Map<number, Set<string>>();
  for (const { tenant, userId } of learners) {
    const partition = partitionOf(tenant, userId, count);
    const keys = partitions.get(partition) ?? new Set<string>();
    partitions.set(partition, keys.add(learnerKey(partition, tenant, userId)));
  }
  const rows: string[] = [];
  for (const [partition, wanted] of partitions) {
    const source = outboxKey(partition);
    // A row that is parked meanwhile leaves the outbox: it is looked for second.
    for (const key of [source, parkedKey(source)])
      for await (const row of rowsOf(client, key)) {
        const [tenant = '', userId = ''] = row.split('\t', 2);
        if (wanted.has(learnerKey(partition, tenant, unescapeText(userId)))) rows.push(row);
      }
  }
  return rows;
}

async function* rowsOf(client: RedisClient, key: string): AsyncGenerator<string> {
  for await (const page of streamPages(client, key, entriesTogether)) {
    for (const [, fields] of page) yield* fieldOf(fields, 'r')?.split('\n') ?? [];
  }
}
