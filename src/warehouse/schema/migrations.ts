/**
 * The schema's history. A change of a table module comes with a new migration that alters what exists; one that was
 * released is never edited. Every statement may run again, also in several processes at once; the
 * numbers are recorded when all that was missing is done.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { StartError } from '../../lifecycle.js';
import { callersTime, runStatement, selectNumber, selectRows } from '../clickhouse/client.js';
import {
  addColumn,
  type Cluster,
  createTables,
  createView,
  defineTable,
  everywhere,
  storedName,
  type View,
} from '../clickhouse/ddl.js';
import { narrowArchive, takeSumsOver } from './narrow-sums.js';
import { type Rollup, selectRollup } from './rollup.js';
import { archivedLearnerSkill, archivedMonths, learnerSums, rollups } from './rollups.js';
import * as tables from './tables.js';
import * as views from './views.js';

interface Migration {
  version: number;
  name: string;
  /** One after the other; the statements of one need none of each other. */
  steps: readonly (readonly string[] | ((client: ClickHouseClient, cluster: Cluster) => Promise<void>))[];
}

/** Doubles do no harm (two processes may record the same version): it is read by its highest number. */
const schemaMigrations = defineTable(
  'schema_migrations -- Versions of the schema that were reached',
  `
    version UInt32 -- Number of the migration
    name String -- What it brought
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) -- When it was finished
  `,
  { engine: 'MergeTree', orderBy: 'version', shardBy: 'version', settings: '' },
);

/** But `attempts`. */
const otherTables = [
  ...rollups.map(({ table }) => table),
  ...[tables.modelVersions, tables.skillParameters],
  ...[tables.goalChanges, tables.skillChanges, tables.servedForecasts],
  ...[tables.deployments, tables.apiKeys, tables.takenBack, tables.erasures],
  ...[tables.webhooks, tables.xapiMappings],
  ...[archivedMonths, archivedLearnerSkill, tables.learnerSnapshots, tables.learnerBaselines],
];

/** Those of a line read none of it. */
const viewsInOrder: readonly (readonly View[])[] = [
  [
    ...rollups.flatMap(({ levels }) => levels.map(({ view }) => view)),
    ...[
      views.formerDays,
      views.goals,
      views.skillCatalogue,
      views.forecasts,
      views.cohortSkillWeekly,
      views.skillVelocity,
    ],
  ],
  [views.forecastOutcomes],
  [views.forecastCoverage],
];

/**
 * The first one is the whole schema as of now, for an empty database; the others alter what earlier versions made. A
 * ClickHouse of an earlier number is not taken over.
 */
export const migrationsFor = (cluster: Cluster): readonly [Migration, ...Migration[]] => [
  {
    version: 7,
    name: 'the whole schema',
    steps: [
      otherTables.flatMap((table) => createTables(table, cluster)),
      createTables(tables.attempts, cluster),
      rollups.map((rollup) => createMaterializedView(rollup, cluster)),
      ...createViews(cluster),
    ],
  },
  {
    version: 8,
    name: 'narrow sums of learners, by day and over all days',
    steps: [
      createTables(learnerSums.table, cluster),
      takeSumsOver,
      narrowArchive(cluster),
      [createMaterializedView(learnerSums, cluster)],
      ...createViews(cluster),
    ],
  },
  {
    version: 9,
    name: 'endpoints of webhooks, mappings of xAPI statements, and an index of event ids',
    steps: [
      createTables(tables.webhooks, cluster),
      createTables(tables.xapiMappings, cluster),
      // Parts of before are indexed when they are merged.
      [addIndex(tables.eventIdIndex, cluster)],
    ],
  },
  {
    version: 10,
    name: 'forgetting per answer, and norms of efficiency',
    steps: [
      [tables.attempts, tables.skillParameters, tables.skillChanges].flatMap((table) =>
        addColumn(table, 'p_forget', cluster),
      ),
      addColumn(tables.attempts, 'accuracy_norm', cluster),
      ...createViews(cluster),
    ],
  },
];

const addIndex = (index: string, cluster: Cluster): string =>
  `ALTER TABLE ${everywhere(storedName('attempts', cluster), cluster)} ADD INDEX IF NOT EXISTS ${index}`;

const createViews = (cluster: Cluster): string[][] =>
  viewsInOrder.map((line) =>
    line.map((view) => createView({ ...view, name: everywhere(view.name, cluster) })),
  );

/** Reads and fills the tables that hold the rows: a block reaches the rollups of the server that takes it. */
const createMaterializedView = (rollup: Rollup, cluster: Cluster): string =>
  `CREATE MATERIALIZED VIEW IF NOT EXISTS ${everywhere(`${rollup.table.name}_mv`, cluster)} ` +
  `TO ${storedName(rollup.table.name, cluster)} AS\n${selectRollup(rollup, undefined, storedName('attempts', cluster))}`;

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
  const run = (query: string) => runStatement(client, query);
  for (const query of createTables(schemaMigrations, cluster)) await run(query);
  await checkPlace(client, cluster);
  const current = await selectNumber(client, 'SELECT max(version) AS version FROM schema_migrations');
  checkVersion(current, known);
  const missing = known.filter(({ version }) => version > current);
  // The first migration creates the whole current schema in an empty database.
  for (const step of (current === 0 ? missing.slice(0, 1) : missing).flatMap(({ steps }) => steps)) {
    if (typeof step === 'function') await step(client, cluster);
    else if (cluster === null) await Promise.all(step.map(run));
    // A Distributed table is made after the one that it reads.
    else for (const query of step) await run(query);
  }
  if (missing.length > 0)
    await client.insert({
      table: schemaMigrations.name,
      columns: ['version', 'name'],
      format: 'JSONEachRow',
      values: missing.map(({ version, name }) => ({ version, name })),
      clickhouse_settings: { async_insert: 0 },
    });
  return missing.map(({ version }) => version);
}

/** Versions of the server and of the schema in it. */
export async function warehouseVersions(client: ClickHouseClient) {
  const query = 'SELECT version() AS server, max(version) AS schema FROM schema_migrations';
  const [found] = await selectRows<{ server: string; schema: number }>(client, query, {
    signal: callersTime(),
  });
  return { version: found?.server ?? 'unknown', schema: Number(found?.schema ?? 0) };
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
