/** What a rebuild reads. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { LearnerPlace, RebuildSource } from '../services/rebuild/ports.js';
import { archivedThrough } from './archive.js';
import { readAttemptPage } from './attempt-pages.js';
import { selectRows } from './client.js';
import { createFactsHistory } from './deployment.js';
import { insertBaselines } from './learner-baselines.js';
import { holdsState } from './presence.js';
import { readLearners, unknownLearners } from './rebuild-learners.js';
import {
  answeredSkills,
  answersByDay,
  catalogueRecords,
  goalRecords,
  itemRecords,
  modelChanges,
  modelTexts,
  newestVersions,
  takenBackIds,
  tenantsOf,
} from './rebuild-state.js';

/**
 * @param clickhouseUrl of the service's account
 * @param maxItems most items of one tenant
 */
export function createRebuildSource(
  client: ClickHouseClient,
  clickhouseUrl: string,
  maxItems: number,
): RebuildSource {
  const facts = createFactsHistory(client, clickhouseUrl);
  return {
    deployment: facts.deployment,
    keys: facts.keys,
    holdsState: () => holdsState(client),
    samplePlaces: () =>
      selectRows(
        client,
        `SELECT tenant, user_id AS userId, partition_id AS partition FROM attempts LIMIT 1000
         UNION ALL SELECT tenant, user_id AS userId, partition_id AS partition FROM learner_snapshots LIMIT 1000`,
      ),
    countAnswers: (partitions) => countAnswers(client, partitions),
    page: (partitions, after) => readAttemptPage(client, partitions, after),
    learners: (learners) => readLearners(client, learners),
    keepBaselines: (baselines, takenAt) => insertBaselines(client, baselines, takenAt),
    unknown: (learners) => unknownLearners(client, learners),
    archivedMonth: () => archivedMonth(client),
    countIds: (partition, fromSecond) => countIds(client, partition, fromSecond),
    idSeconds: (fromSecond) => idSeconds(client, fromSecond),
    ids: (partition, fromSecond) => idsInOrder(client, partition, fromSecond),
    takenBack: (fromSecond) => takenBackIds(client, fromSecond),
    tenants: () => tenantsOf(client),
    answeredSkills: (tenant) => answeredSkills(client, tenant),
    goals: () => goalRecords(client),
    catalogue: () => catalogueRecords(client),
    modelChanges: () => modelChanges(client),
    modelTexts: (change) => modelTexts(client, change),
    newestVersions: () => newestVersions(client),
    items: (tenant) => itemRecords(client, tenant, maxItems),
    answersByDay: (partitions) => answersByDay(client, partitions),
    lastOutboxId: (partition) => lastOutboxId(client, partition),
  };
}

async function countAnswers(client: ClickHouseClient, partitions: readonly number[]): Promise<number> {
  const query =
    'SELECT toFloat64(count()) AS answers FROM attempts WHERE partition_id IN {partitions:Array(UInt16)}';
  const [row] = await selectRows<{ answers: number }>(client, query, undefined, { partitions });
  return row?.answers ?? 0;
}

async function archivedMonth(client: ClickHouseClient): Promise<number> {
  const [row] = await selectRows<{ month: number }>(client, `SELECT ${archivedThrough} AS month`);
  return row?.month ?? 0;
}

const withIds = "event_id != '' AND received_at >= toDateTime64({fromSecond:UInt32}, 3, 'UTC')";

async function countIds(client: ClickHouseClient, partition: number, fromSecond: number): Promise<number> {
  const query = `SELECT toFloat64(count()) AS ids FROM attempts WHERE partition_id = {partition:UInt16} AND ${withIds}`;
  const [row] = await selectRows<{ ids: number }>(client, query, undefined, { partition, fromSecond });
  return row?.ids ?? 0;
}

async function idSeconds(client: ClickHouseClient, fromSecond: number): Promise<[number, number][]> {
  const query = `SELECT toUnixTimestamp(received_at) AS second, toFloat64(count()) AS ids FROM attempts
    WHERE ${withIds} GROUP BY second ORDER BY second DESC`;
  const rows = await selectRows<{ second: number; ids: number }>(client, query, undefined, { fromSecond });
  return rows.map(({ second, ids }) => [second, ids]);
}

const idsTogether = 50_000;

const selectIds = `SELECT tenant, user_id AS userId, event_id AS eventId, toString(outbox_ms) AS ms, outbox_seq AS seq
FROM attempts WHERE partition_id = {partition:UInt16} AND ${withIds}
  AND outbox_ms >= {ms:UInt64} AND (outbox_ms > {ms:UInt64} OR outbox_seq > {seq:Int64})
ORDER BY outbox_ms, outbox_seq LIMIT ${idsTogether}`;

type IdRow = LearnerPlace & { readonly eventId: string; readonly ms: string; readonly seq: number };

async function* idsInOrder(
  client: ClickHouseClient,
  partition: number,
  fromSecond: number,
): AsyncGenerator<IdRow[]> {
  let after: Pick<IdRow, 'ms' | 'seq'> = { ms: '0', seq: -1 };
  for (;;) {
    const params = { partition, fromSecond, ...after };
    const rows: IdRow[] = await selectRows<IdRow>(client, selectIds, undefined, params);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = { ms: last.ms, seq: last.seq };
  }
}

async function lastOutboxId(client: ClickHouseClient, partition: number): Promise<string | null> {
  const query = `SELECT toString(outbox_ms) AS ms, outbox_seq AS seq FROM attempts
    WHERE partition_id = {partition:UInt16} ORDER BY outbox_ms DESC, outbox_seq DESC LIMIT 1`;
  const [row] = await selectRows<{ ms: string; seq: number }>(client, query, undefined, { partition });
  return row === undefined ? null : `${row.ms}-${row.seq}`;
}
