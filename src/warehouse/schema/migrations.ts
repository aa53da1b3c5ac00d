/**
 * The schema's history. A migration that was released is never edited: a change of a table module comes with a
 * new migration that alters what exists. Every statement may run again, also in several processes at once; the
 * numbers are recorded when all that was missing is done.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { selectRows } from '../clickhouse/client.js';
import {
  addColumnsTo,
  type Cluster,
  createTables,
  everywhere,
  modifyColumnOf,
} from '../clickhouse/cluster.js';
import { createDescribedView, replaceDescribedView, type Table } from '../clickhouse/table.js';
import { archivedLearnerSkill, archivedMonths, learnerBaselines, learnerSnapshots } from './archive.js';
import { attempts, fittedColumns, originColumns, outboxSeq, placedColumns } from './attempts.js';
import { cohortSkillWeekly, skillVelocity } from './cohorts.js';
import { erasures, takenBack } from './correction-tables.js';
import { apiKeys, deployments } from './deployment-tables.js';
import { forecastCoverage, forecastOutcomes } from './forecast-views.js';
import {
  forecasts,
  goalChanges,
  goals,
  servedForecasts,
  skillCatalogue,
  skillChanges,
} from './journal-tables.js';
import { modelVersions, skillParameters } from './models.js';
import { createMaterializedView, createView, rollups } from './rollups.js';

interface Migration {
  version: number;
  name: string;
  /** One after the other; the statements of one need none of each other. */
  steps: readonly (readonly string[])[];
}

/** Doubles do no harm (two processes may record the same version): it is read by its highest number. */
const schemaMigrations: Table = {
  name: 'schema_migrations',
  comment: 'Versions of the schema that were reached',
  engine: 'MergeTree',
  columns: [
    { name: 'version', type: 'UInt32', comment: 'Number of the migration' },
    { name: 'name', type: 'String', comment: 'What it brought' },
    { name: 'applied_at', type: "DateTime64(3, 'UTC') DEFAULT now64(3)", comment: 'When it was finished' },
  ],
  orderBy: 'version',
  shardBy: 'version',
};

/** Rollups exist before the first attempt, so that no view misses a row. */
export const migrationsFor = (cluster: Cluster): readonly Migration[] => [
  {
    version: 1,
    name: 'attempts with daily rollups',
    steps: [
      createTables(attempts, cluster),
      ...rollups.flatMap((rollup) => [
        createTables(rollup.table, cluster),
        [createMaterializedView(rollup, cluster), createView(rollup, cluster)],
      ]),
    ],
  },
  {
    version: 2,
    name: 'fitted parameters',
    steps: [
      [
        ...addColumnsTo(attempts, fittedColumns, 'model_version', cluster),
        ...createTables(modelVersions, cluster),
        ...createTables(skillParameters, cluster),
      ],
    ],
  },
  {
    version: 3,
    name: 'sections, goals, forecasts and cohorts',
    steps: [
      [
        ...addColumnsTo(attempts, placedColumns, 'recommendation_code', cluster),
        ...[goalChanges, skillChanges, servedForecasts].flatMap((table) => createTables(table, cluster)),
      ],
      ...[
        [goals, skillCatalogue, forecasts],
        [forecastOutcomes],
        [forecastCoverage, cohortSkillWeekly, skillVelocity],
      ].map((views) =>
        views.map((view) => createDescribedView({ ...view, name: everywhere(view.name, cluster) })),
      ),
    ],
  },
  {
    version: 4,
    name: 'rebuilding, correcting and keeping',
    steps: [
      [
        ...addColumnsTo(attempts, originColumns, 'baseline_total', cluster),
        ...[
          deployments,
          apiKeys,
          archivedMonths,
          archivedLearnerSkill,
          learnerSnapshots,
          takenBack,
          erasures,
        ].flatMap((table) => createTables(table, cluster)),
      ],
    ],
  },
  { version: 5, name: 'baselines by later formulas', steps: [createTables(learnerBaselines, cluster)] },
  {
    version: 6,
    name: 'skills that are taken off the catalogue',
    steps: [[replaceDescribedView({ ...skillCatalogue, name: everywhere(skillCatalogue.name, cluster) })]],
  },
  {
    version: 7,
    name: 'rows that share an entry of the outbox',
    steps: [outboxSeq.flatMap((column) => modifyColumnOf(attempts, column, cluster))],
  },
];

/** On one server. */
export const migrations = migrationsFor(null);

/**
 * Brings the database to this code's schema; does nothing when it is there.
 *
 * @returns the versions that were applied now
 * @throws SchemaTooNewError when a newer version of the service has been here
 * @throws SchemaElsewhereError when the tables are those of one server and a cluster is asked for, or the reverse
 */
export async function migrate(
  client: ClickHouseClient,
  cluster: Cluster = null,
  known = migrationsFor(cluster),
): Promise<number[]> {
  for (const query of createTables(schemaMigrations, cluster)) await client.command({ query });
  await checkPlace(client, cluster);
  const current = await schemaVersion(client);
  const newest = known.at(-1)?.version ?? 0;
  if (current > newest) throw new SchemaTooNewError(current, newest);
  const missing = known.filter(({ version }) => version > current);
  for (const step of missing.flatMap(({ steps }) => steps)) await run(client, step, cluster);
  if (missing.length > 0) await record(client, missing);
  return missing.map(({ version }) => version);
}

/** No other attempt would help. */
export class SchemaError extends Error {}

export class SchemaTooNewError extends SchemaError {
  override readonly name = 'SchemaTooNewError';
  constructor(found: number, known: number) {
    super(
      `ClickHouse has schema version ${found}, this version of the service knows ${known}: install the newer one`,
    );
  }
}

export class SchemaElsewhereError extends SchemaError {
  override readonly name = 'SchemaElsewhereError';
  constructor(cluster: Cluster) {
    super(
      cluster === null
        ? 'the tables in ClickHouse are those of a cluster: set CLICKHOUSE_CLUSTER to its name'
        : `the tables in ClickHouse are not those of a cluster: use another database for CLICKHOUSE_CLUSTER=${cluster}`,
    );
  }
}

/** IF NOT EXISTS would leave the tables of before as they are. */
async function checkPlace(client: ClickHouseClient, cluster: Cluster): Promise<void> {
  const query = `SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = '${schemaMigrations.name}'`;
  const [table] = await selectRows<{ engine: string }>(client, query);
  if ((table?.engine === 'Distributed') !== (cluster !== null)) throw new SchemaElsewhereError(cluster);
}

async function schemaVersion(client: ClickHouseClient): Promise<number> {
  const [row] = await selectRows<{ version: number }>(
    client,
    'SELECT max(version) AS version FROM schema_migrations',
  );
  return row?.version ?? 0;
}

/** At the same time, but on a cluster: there a Distributed table is made after the one that it reads. */
async function run(client: ClickHouseClient, step: readonly string[], cluster: Cluster): Promise<void> {
  if (cluster === null) await Promise.all(step.map((query) => client.command({ query })));
  else for (const query of step) await client.command({ query });
}

async function record(client: ClickHouseClient, reached: readonly Migration[]): Promise<void> {
  await client.insert({
    table: schemaMigrations.name,
    columns: ['version', 'name'],
    format: 'JSONEachRow',
    values: reached.map(({ version, name }) => ({ version, name })),
    clickhouse_settings: { async_insert: 0 },
  });
}
