/**
 * The schema's history. A migration that was released is never edited: a change of a table module comes with a
 * new migration that alters what exists. Every statement may run again, also in several processes at once; the
 * numbers are recorded when all that was missing is done.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { StartError } from '../../lifecycle.js';
import { selectRows } from '../clickhouse/client.js';
import { type Cluster, createTables, everywhere, storedName } from '../clickhouse/cluster.js';
import { createView, defineTable, type Table, type View } from '../clickhouse/table.js';
import { archivedLearnerSkill, archivedMonths, learnerBaselines, learnerSnapshots } from './archive.js';
import { attempts } from './attempts.js';
import { cohortSkillWeekly, skillVelocity } from './cohorts.js';
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
import { apiKeys, deployments, erasures, takenBack } from './record-tables.js';
import { type Rollup, rollups, selectRollup } from './rollups.js';

interface Migration {
  version: number;
  name: string;
  /** One after the other; the statements of one need none of each other. */
  steps: readonly (readonly string[])[];
}

/** Doubles do no harm (two processes may record the same version): it is read by its highest number. */
const schemaMigrations = defineTable(
  'schema_migrations',
  'Versions of the schema that were reached',
  `
    version UInt32 -- Number of the migration
    name String -- What it brought
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) -- When it was finished
  `,
  { engine: 'MergeTree', orderBy: 'version', shardBy: 'version', settings: {} },
);

/** But `attempts`. */
const tables: readonly Table[] = [
  ...rollups.map(({ table }) => table),
  ...[modelVersions, skillParameters, goalChanges, skillChanges, servedForecasts],
  ...[deployments, apiKeys, takenBack, erasures],
  ...[archivedMonths, archivedLearnerSkill, learnerSnapshots, learnerBaselines],
];

/** Those of a line read none of it. */
const views: readonly (readonly View[])[] = [
  [...rollups.map(({ view }) => view), goals, skillCatalogue, forecasts, cohortSkillWeekly, skillVelocity],
  [forecastOutcomes],
  [forecastCoverage],
];

/** The first one is the whole schema of the first release; a ClickHouse of an earlier number is not taken over. */
export const migrationsFor = (cluster: Cluster): readonly [Migration, ...Migration[]] => [
  {
    version: 7,
    name: 'first release',
    steps: [
      tables.flatMap((table) => createTables(table, cluster)),
      createTables(attempts, cluster),
      rollups.map((rollup) => createMaterializedView(rollup, cluster)),
      ...views.map((line) =>
        line.map((view) => createView({ ...view, name: everywhere(view.name, cluster) })),
      ),
    ],
  },
];

/** Reads and fills the tables that hold the rows: a block reaches the rollups of the server that takes it. */
const createMaterializedView = (rollup: Rollup, cluster: Cluster): string =>
  [
    `CREATE MATERIALIZED VIEW IF NOT EXISTS ${everywhere(`${rollup.table.name}_mv`, cluster)}`,
    `TO ${storedName(rollup.table.name, cluster)} AS\n${selectRollup(rollup, undefined, storedName('attempts', cluster))}`,
  ].join(' ');

/** On one server. */
export const migrations = migrationsFor(null);

/**
 * Brings the database to this code's schema; does nothing when it is there.
 *
 * @returns the versions that were applied now
 * @throws StartError for a database of a newer version of the service, of one before the first release, or whose tables are
 *   those of one server where a cluster is asked for, or the reverse
 */
export async function migrate(
  client: ClickHouseClient,
  cluster: Cluster = null,
  known: readonly Migration[] = migrationsFor(cluster),
): Promise<number[]> {
  for (const query of createTables(schemaMigrations, cluster)) await client.command({ query });
  await checkPlace(client, cluster);
  const current = await schemaVersion(client);
  checkVersion(current, known);
  const missing = known.filter(({ version }) => version > current);
  for (const step of missing.flatMap(({ steps }) => steps)) await run(client, step, cluster);
  if (missing.length > 0) await record(client, missing);
  return missing.map(({ version }) => version);
}

/** IF NOT EXISTS would leave the tables of before as they are. */
async function checkPlace(client: ClickHouseClient, cluster: Cluster): Promise<void> {
  const query = `SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = '${schemaMigrations.name}'`;
  const [table] = await selectRows<{ engine: string }>(client, query);
  const isOnCluster = table?.engine === 'Distributed';
  if (isOnCluster && cluster === null)
    throw new StartError(
      'the tables in ClickHouse are those of a cluster: set CLICKHOUSE_CLUSTER to its name',
    );
  if (!isOnCluster && cluster !== null)
    throw new StartError(
      `the tables in ClickHouse are not those of a cluster: use another database for CLICKHOUSE_CLUSTER=${cluster}`,
    );
}

function checkVersion(current: number, known: readonly Migration[]): void {
  const [oldest, newest] = [known[0]?.version ?? 0, known.at(-1)?.version ?? 0];
  const found = `ClickHouse has schema version ${current}`;
  if (current > newest)
    throw new StartError(`${found}, this version of the service knows ${newest}: install the newer one`);
  if (current > 0 && current < oldest)
    throw new StartError(
      `${found}, this version of the service takes ${oldest} or later: use another database`,
    );
}

async function schemaVersion(client: ClickHouseClient): Promise<number> {
  const query = 'SELECT max(version) AS version FROM schema_migrations';
  const [row] = await selectRows<{ version: number }>(client, query);
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
