import type {
  AnswersReply,
  FitTask,
  ItemsReply,
  PublishReply,
} from '../../src/contracts/models/fit-tasks.js';
import { sharedArrays } from '../../src/domain/base/answer-log.js';
import { hashItem, readItemFigures } from '../../src/store/models/item-store.js';
import { publishModel } from '../../src/store/models/model-store.js';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { readAnswerColumns } from '../../src/warehouse/reads/answer-columns.js';
import { withRedis } from '../track/worker-redis.js';

export async function runDatabaseTask(task: FitTask): Promise<AnswersReply | ItemsReply | PublishReply> {
  if (task.kind === 'read') return readAnswers(task.clickhouseUrl, task.tenant, task.maxAnswers);
  const { redisUrl } = task;
  if (task.kind === 'items')
    return withRedis(redisUrl, (client) =>
      readItemFigures(client, task.tenant, task.version, task.itemHashes),
    );
  return withRedis(redisUrl, async (client) => ({ published: await publishModel(client, task) }));
}

async function readAnswers(url: string, tenant: string, maxAnswers: number): Promise<AnswersReply> {
  const client = connectWarehouse(url);
  try {
    const { itemIds, ...columns } = await readAnswerColumns(client, tenant, maxAnswers);
    const hashes = Buffer.concat(itemIds.map(hashItem));
    const itemHashes = sharedArrays.bytes(hashes.length);
    itemHashes.set(hashes);
    return { ...columns, itemHashes };
  } finally {
    await client.close();
  }
}
