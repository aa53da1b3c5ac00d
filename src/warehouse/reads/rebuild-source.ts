/** What a rebuild reads. */
import type { ClickHouseClient } from '@clickhouse/client';
import { type LearnerPlace, learnerName, learnerNameSql } from '../../contracts/learner-name.js';
import type { OutboxId } from '../../contracts/outbox-ids.js';
import { selectRows } from '../clickhouse/client.js';
import { archivedThrough, learnerSnapshots } from '../schema/archive.js';
import { holdsState } from '../schema/presence.js';
import { attemptPages, isNamed, namedLearners, readLearners } from './attempt-pages.js';
import { createFactsHistory } from './facts-history.js';
import { createStateReads } from './rebuild-state.js';

/** Lists that may be long come in pieces. @throws Error of the client */
export type RebuildSource = ReturnType<typeof createRebuildSource>;

/**
 * @param clickhouseUrl of the service's account
 * @param maxItems most items of one tenant
 */
export function createRebuildSource(client: ClickHouseClient, clickhouseUrl: string, maxItems: number) {
  const { deployment, keys } = createFactsHistory(client, clickhouseUrl);
  const one = async <Row>(query: string, params = {}): Promise<Row | null> =>
    (await selectRows<Row>(client, query, undefined, params))[0] ?? null;
  return {
    ...createStateReads(client, maxItems),
    deployment,
    keys,
    holdsState: () => holdsState(client),
    /** Some learners, with the partition that their rows were written for. */
    samplePlaces: () =>
      selectRows<LearnerPlace & { readonly partition: number }>(
        client,
        ['attempts', learnerSnapshots.name]
          .map(
            (name) => `SELECT tenant, user_id AS userId, partition_id AS partition FROM ${name} LIMIT 1000`,
          )
          .join(' UNION ALL '),
      ),
    countAnswers: async (partitions: readonly number[]): Promise<number> => {
      const query =
        'SELECT toFloat64(count()) AS answers FROM attempts WHERE partition_id IN {partitions:Array(UInt16)}';
      return (await one<{ answers: number }>(query, { partitions }))?.answers ?? 0;
    },
    pages: (partitions: readonly number[], after: LearnerPlace | null) =>
      attemptPages(client, partitions, after),
    learners: (learners: readonly LearnerPlace[]) => readLearners(client, isNamed, namedLearners(learners)),
    unknown: (learners: readonly LearnerPlace[]) => unknownLearners(client, learners),
    /** The last month of arrival, as 202601, whose rows were dropped; 0: none. */
    archivedMonth: async (): Promise<number> =>
      (await one<{ month: number }>(`SELECT ${archivedThrough} AS month`))?.month ?? 0,
    /** The highest outbox id of the partition. */
    lastOutboxId: (partition: number) =>
      one<OutboxId>(
        `SELECT toFloat64(outbox_ms) AS ms, toFloat64(outbox_seq) AS seq FROM attempts
         WHERE partition_id = {partition:UInt16} ORDER BY outbox_ms DESC, outbox_seq DESC LIMIT 1`,
        { partition },
      ),
  };
}

/** Those without a row and without a snapshot. */
async function unknownLearners(
  client: ClickHouseClient,
  learners: readonly LearnerPlace[],
): Promise<LearnerPlace[]> {
  if (learners.length === 0) return [];
  const found = await selectRows<{ name: string }>(
    client,
    ['attempts', learnerSnapshots.name]
      .map((table) => `SELECT DISTINCT ${learnerNameSql} AS name FROM ${table} WHERE ${isNamed}`)
      .join(' UNION DISTINCT '),
    undefined,
    namedLearners(learners),
  );
  const known = new Set(found.map(({ name }) => name));
  return learners.filter(({ tenant, userId }) => !known.has(learnerName(tenant, userId)));
}
