/** What a rebuild reads. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { OutboxId } from '../../contracts/outbox-ids.js';
import type { RebuildSource } from '../../services/rebuild/ports.js';
import { selectRows } from '../clickhouse/client.js';
import { archivedThrough } from '../schema/archive.js';
import { insertBaselines } from '../schema/learner-baselines.js';
import { holdsState } from '../schema/presence.js';
import { readAttemptPage } from './attempt-pages.js';
import { createFactsHistory } from './deployment.js';
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

async function lastOutboxId(client: ClickHouseClient, partition: number): Promise<OutboxId | null> {
  const query = `SELECT toFloat64(outbox_ms) AS ms, toFloat64(outbox_seq) AS seq FROM attempts
    WHERE partition_id = {partition:UInt16} ORDER BY outbox_ms DESC, outbox_seq DESC LIMIT 1`;
  const [row] = await selectRows<OutboxId>(client, query, undefined, { partition });
  return row ?? null;
}
