import type { AnswersReply, ReadTask } from '../../src/contracts/fit-tasks.js';
import { hashItem, itemIdBytes } from '../../src/store/models/item-id.js';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { readAnswerColumns } from '../../src/warehouse/reads/answer-columns.js';

/** Reads a tenant's answers; the ids of items, of which there may be very many, stay here. */
export async function readAnswers({ clickhouseUrl, tenant, maxAnswers }: ReadTask): Promise<AnswersReply> {
  const client = connectWarehouse(clickhouseUrl);
  try {
    const { itemIds, ...columns } = await readAnswerColumns(client, tenant, maxAnswers);
    return { ...columns, itemHashes: hashItems(itemIds) };
  } finally {
    await client.close();
  }
}

function hashItems(itemIds: readonly string[]): Uint8Array {
  const hashes = new Uint8Array(new SharedArrayBuffer(itemIdBytes * itemIds.length));
  for (const [index, itemId] of itemIds.entries()) hashes.set(hashItem(itemId), itemIdBytes * index);
  return hashes;
}
