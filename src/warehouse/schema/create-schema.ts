import type { ClickHouseClient } from '@clickhouse/client';
import { StartError } from '../../lifecycle.js';
import { callersTime, runStatement, selectNumber, selectRows } from '../clickhouse/client.js';
import {
  type Cluster,
  createTables,
  createView,
  defineTable,
  everywhere,
  storedName,
  type View,
} from '../clickhouse/ddl.js';
import { insertObjects } from '../clickhouse/insert-rows.js';
import { attempts, learnerSnapshots } from './attempt-tables.js';
import { apiKeys, deployments, erasures, xapiMappings } from './deployment-tables.js';
import { goalChanges, servedForecasts, skillChanges, takenBack, webhooks } from './journal-tables.js';
import { modelVersions, skillParameters } from './model-tables.js';
import { type Rollup, selectRollup } from './rollup.js';
import { archivedLearnerSkill, archivedMonths, rollups } from './rollups.js';
import * as views from './views.js';

/** Increase it when a table or view changes, but not for comments. */
const schemaVersion = 10;

const schemaMigrations = defineTable(
  'schema_migrations -- Version of the schema in this database',
  `
    version UInt32 -- Version of the schema
    name String -- What was created
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) -- When it was created
  `,
  { engine: 'MergeTree', orderBy: 'version', shardBy: 'version', settings: '' },
);

const otherTables = [
  ...rollups.map(({ table }) => table),
  ...[modelVersions, skillParameters],
  ...[goalChanges, skillChanges, servedForecasts, takenBack, webhooks],
  ...[deployments, apiKeys, erasures, xapiMappings],
  ...[archivedMonths, archivedLearnerSkill, learnerSnapshots],
];

/** A view reads only views of earlier groups. */
const viewGroups: readonly (readonly View[])[] = [
  [
    ...rollups.flatMap(({ levels }) => levels.map(({ view }) => view)),
    ...[views.goals, views.skillCatalogue, views.forecasts, views.cohortSkillWeekly, views.skillVelocity],
  ],
  [views.forecastOutcomes],
  [views.forecastCoverage],
];

/** Each group needs the earlier ones. Statements can be repeated, also concurrently. */
export const schemaStatements = (cluster: Cluster): string[][] => [
  otherTables.flatMap((table) => createTables(table, cluster)),
  createTables(attempts, cluster),
  rollups.map((rollup) => createMaterializedView(rollup, cluster)),
  ...viewGroups.map((group) =>
    group.map((view) => createView({ ...view, name: everywhere(view.name, cluster) })),
  ),
];

/** Reads and writes stored tables: a block reaches the rollups of its server. */
const createMaterializedView = (rollup: Rollup, cluster: Cluster): string =>
  `CREATE MATERIALIZED VIEW IF NOT EXISTS ${everywhere(`${rollup.table.name}_mv`, cluster)} ` +
  `TO ${storedName(rollup.table.name, cluster)} AS\n${selectRollup(rollup, undefined, storedName('attempts', cluster))}`;

/**
 * @returns whether the schema was created; false if its version is recorded
 * @throws StartError for another version, or if CLICKHOUSE_CLUSTER does not match the tables
 */
export async function createSchema(client: ClickHouseClient, cluster: Cluster = null): Promise<boolean> {
  const run = (query: string) => runStatement(client, query);
  for (const query of createTables(schemaMigrations, cluster)) await run(query);
  await checkPlace(client, cluster);
  const current = await selectNumber(client, 'SELECT max(version) AS version FROM schema_migrations');
  if (current === schemaVersion) return false;
  if (current !== 0) throw otherVersionError(current);
  for (const group of schemaStatements(cluster)) {
    if (cluster === null) await Promise.all(group.map(run));
    // A Distributed table needs its stored table.
    else for (const query of group) await run(query);
  }
  await insertObjects(client, schemaMigrations.name, [{ version: schemaVersion, name: 'the whole schema' }]);
  return true;
}

export async function warehouseVersions(client: ClickHouseClient) {
  const query = 'SELECT version() AS server, max(version) AS schema FROM schema_migrations';
  const [found] = await selectRows<{ server: string; schema: number }>(client, query, {
    signal: callersTime(),
  });
  return { version: found?.server ?? 'unknown', schema: Number(found?.schema ?? 0) };
}

/** IF NOT EXISTS would accept tables of the other kind. */
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

function otherVersionError(current: number): StartError {
  const found = `ClickHouse has schema version ${current}, this version of the service`;
  return new StartError(
    current > schemaVersion
      ? `${found} knows ${schemaVersion}: install the newer one`
      : `${found} needs ${schemaVersion}: use another database`,
  );
}
