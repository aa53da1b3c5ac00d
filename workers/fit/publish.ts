import type { ItemsReply, ItemsTask, PublishReply, PublishTask } from '../../src/contracts/fit-tasks.js';
import { encodeItems, readItemFigures } from '../../src/store/models/item-store.js';
import { publishModel } from '../../src/store/models/model-store.js';
import { withRedis } from '../track/thread.js';

export const publish = ({ redisUrl, items, itemHashes, ...task }: PublishTask): Promise<PublishReply> =>
  withRedis(redisUrl, async (client) => {
    const entries = items && encodeItems(items, itemHashes);
    return { published: await publishModel(client, { ...task, items: entries }) };
  });

export const readItems = ({ redisUrl, tenant, version, itemHashes }: ItemsTask): Promise<ItemsReply> =>
  withRedis(redisUrl, (client) => readItemFigures(client, tenant, version, itemHashes));
