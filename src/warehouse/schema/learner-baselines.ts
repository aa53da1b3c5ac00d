/** Baselines that rows do not tell, for they are of earlier formulas: taken when a rebuild replayed them, once for all. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { TakenBaseline } from '../../contracts/rebuild-tasks.js';
import { modelVersion } from '../../domain/base/params.js';
import { totalsSince } from '../../domain/score/goal.js';
import { sqlTime } from '../clickhouse/client.js';
import type { Table } from '../clickhouse/table.js';

/** A rebuild that died writes a row again. */
export const learnerBaselines: Table = {
  name: 'learner_baselines',
  comment:
    'Baseline of a learner whose rows have one of earlier formulas: taken anew when Redis was restored by later ones; read it with FINAL',
  engine: 'ReplacingMergeTree(taken_at)',
  columns: [
    { name: 'tenant', type: 'LowCardinality(String)', comment: 'Owner' },
    { name: 'user_id', type: 'String', codec: 'ZSTD(1)', comment: 'Learner' },
    { name: 'partition_id', type: 'UInt16', comment: 'Redis partition of the learner' },
    { name: 'model_version', type: 'UInt32', comment: 'Version of the rules by which it was taken' },
    {
      name: 'baseline_total',
      type: 'UInt16',
      comment:
        'Total score that progress to a goal is measured from, 400 to 1600: where the learner stood at the 20th answer',
    },
    { name: 'taken_at', type: "DateTime64(3, 'UTC')", comment: 'When it was taken' },
  ],
  orderBy: '(tenant, user_id, model_version)',
  shardBy: 'cityHash64(tenant, user_id)',
  settings: { fsync_after_insert: 1, fsync_part_directory: 1 },
};

/** Condition: the totals of its formulas can be compared with today's. */
export const baselineHolds = `model_version >= ${totalsSince}`;

/** Resolves when ClickHouse has them. @param takenAt Unix milliseconds */
export async function insertBaselines(
  client: ClickHouseClient,
  baselines: readonly TakenBaseline[],
  takenAt: number,
): Promise<void> {
  if (baselines.length === 0) return;
  await client.insert({
    table: learnerBaselines.name,
    format: 'JSONEachRow',
    values: baselines.map(({ tenant, userId, partition, total }) => ({
      tenant,
      user_id: userId,
      partition_id: partition,
      model_version: modelVersion,
      baseline_total: total,
      taken_at: sqlTime(takenAt),
    })),
    clickhouse_settings: { async_insert: 0, insert_deduplicate: 0, wait_end_of_query: 1 },
  });
}
