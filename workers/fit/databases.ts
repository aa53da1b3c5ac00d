import type {
  AnswersReply,
  ItemsReply,
  ItemsTask,
  PublishReply,
  PublishTask,
  ReadTask,
} from '../../src/contracts/fit-tasks.js';
import { shared } from '../../src/domain/base/answer-log.js';
import { hashItem, readItemFigures } from '../../src/store/models/item-store.js';
import { publishModel } from '../../src/store/models/model-store.js';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { readAnswerColumns } from '../../src/warehouse/reads/answer-columns.js';
import { withRedis } from '../track/thread.js';

/** Reads a tenant's answers; the ids of items, of which there may be very many, stay here. */
export async function readAnswers({ clickhouseUrl, tenant, maxAnswers }: ReadTask): Promise<AnswersReply> {
  const client = connectWarehouse(clickhouseUrl);
  try {
    const { itemIds, ...columns } = await readAnswerColumns(client, tenant, maxAnswers);
    const hashes = Buffer.concat(itemIds.map(hashItem));
    const itemHashes = shared.bytes(hashes.length);
    itemHashes.set(hashes);
    return { ...columns, itemHashes };
  } finally {
    await client.close();
  }
}

export const readItems = ({ redisUrl, tenant, version, itemHashes }: ItemsTask): Promise<ItemsReply> =>
  withRedis(redisUrl, (client) => readItemFigures(client, tenant, version, itemHashes));

export const publish = ({ redisUrl, ...publication }: PublishTask): Promise<PublishReply> =>
  withRedis(redisUrl, async (client) => ({ published: await publishModel(client, publication) }));
