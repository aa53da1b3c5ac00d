import type { ClickHouseClient } from '@clickhouse/client';
import { StartError } from '../../lifecycle.js';
import { createReadDeadline, runStatement, selectNumber, selectRows } from '../clickhouse/client.js';
import {
  appendOnCluster,
  buildAddColumns,
  buildCreateTables,
  buildCreateView,
  type ClusterName,
  defineTable,
  localTableName,
  type Table,
  type View,
} from '../clickhouse/ddl.js';
import { insertObjects } from '../clickhouse/insert-rows.js';
import {
  attempts,
  buildSummedSource,
  learnerSnapshots,
  replacedAttempts,
  skillAnswers,
} from './attempt-tables.js';
import { forecasts, goals, skillCatalogue } from './current-views.js';
import { apiKeys, deployments, erasures, tenantSettings, xapiMappings } from './deployment-tables.js';
import { forecastCoverage, forecastOutcomes } from './forecast-views.js';
import {
  groupChanges,
  groupMemberChanges,
  groupMembers,
  groups,
  learnerProfileChanges,
  learnerProfiles,
} from './group-tables.js';
import { groupWeekly } from './group-views.js';
import { goalChanges, retractedAnswers, servedForecasts, skillChanges, webhooks } from './journal-tables.js';
import { timeZones } from './local-days.js';
import { modelVersions, skillParameters } from './model-tables.js';
import { buildRollupSelect, type Rollup } from './rollup.js';
import { archivedLearnerSkill, archivedMonths, furtherNames, rollups } from './rollups.js';
import { cohortSkillWeekly, skillVelocity } from './skill-views.js';

/** Increase it when a table or view changes, but not for comments. */
const schemaVersion = 14;
/** This and later versions lack only the columns in `addedColumns`. */
const upgradableVersion = 10;
const addedColumns: readonly (readonly [Table, readonly string[]])[] = [
  [servedForecasts, ['calibration_below', 'calibration_above', 'accuracy_cases']],
  [
    attempts,
    [
      'local_date',
      'time_zone',
      'further_skills',
      'skill_ids',
      'masteries_before',
      'masteries_after',
      'mastery_chance',
    ],
  ],
  ...[...rollups.map(({ table }) => table), archivedLearnerSkill].map(
    (table) => [table, furtherNames] as const,
  ),
  [apiKeys, ['name', 'note']],
];

/** Two processes may record the same version: readers take the highest. */
const schemaMigrations = defineTable(
  'schema_migrations -- Version of the schema in this database',
  `
    version UInt32 -- Version of the schema
    name String -- Description of the change
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) -- Time of the change
  `,
  { engine: 'MergeTree', orderBy: 'version', shardBy: 'version', settings: '' },
);

const otherTables = [
  ...rollups.map(({ table }) => table),
  ...[modelVersions, skillParameters],
  ...[goalChanges, skillChanges, servedForecasts, retractedAnswers, webhooks],
  ...[groupChanges, groupMemberChanges, learnerProfileChanges],
  ...[deployments, apiKeys, erasures, xapiMappings, tenantSettings],
  ...[archivedMonths, archivedLearnerSkill, learnerSnapshots, replacedAttempts],
];

/** A view reads only views of earlier groups. */
const viewGroups: readonly (readonly View[])[] = [
  [
    skillAnswers,
    ...rollups.flatMap(({ levels }) => levels.map(({ view }) => view)),
    ...[goals, skillCatalogue, forecasts, cohortSkillWeekly, skillVelocity],
    ...[groups, groupMembers, learnerProfiles, timeZones],
  ],
  [forecastOutcomes, groupWeekly],
  [forecastCoverage],
];

/** Each group needs the earlier ones. Statements can be repeated, also concurrently. */
export const buildSchemaStatements = (cluster: ClusterName): string[][] => [
  otherTables.flatMap((table) => buildCreateTables(table, cluster)),
  buildCreateTables(attempts, cluster),
  addedColumns.flatMap(([table, names]) => buildAddColumns(table, names, cluster)),
  rollups.map((rollup) => buildMaterializedView(rollup, cluster)),
  // Inserts of other processes reach the rollups during an upgrade, unlike between DROP and CREATE.
  rollups.map(
    (rollup) =>
      `ALTER TABLE ${appendOnCluster(`${rollup.table.name}_mv`, cluster)} MODIFY QUERY\n${buildViewQuery(rollup, cluster)}`,
  ),
  ...viewGroups.map((group) =>
    group.map((view) => buildCreateView({ ...view, name: appendOnCluster(view.name, cluster) })),
  ),
];

/** Reads and writes stored tables: a block reaches the rollups of its server. */
const buildMaterializedView = (rollup: Rollup, cluster: ClusterName): string =>
  `CREATE MATERIALIZED VIEW IF NOT EXISTS ${appendOnCluster(`${rollup.table.name}_mv`, cluster)} ` +
  `TO ${localTableName(rollup.table.name, cluster)} AS\n${buildViewQuery(rollup, cluster)}`;

const buildViewQuery = (rollup: Rollup, cluster: ClusterName): string =>
  buildRollupSelect(rollup, undefined, buildSummedSource(localTableName('attempts', cluster)));

/**
 * @returns whether the schema was created or upgraded; false if its version is recorded
 * @throws StartError for another version, or if CLICKHOUSE_CLUSTER does not match the tables
 */
export async function createSchema(client: ClickHouseClient, cluster: ClusterName = null): Promise<boolean> {
  const run = (query: string) => runStatement(client, query);
  for (const query of buildCreateTables(schemaMigrations, cluster)) await run(query);
  await checkClusterMode(client, cluster);
  const current = await selectNumber(client, 'SELECT max(version) AS version FROM schema_migrations');
  if (current === schemaVersion) return false;
  const isUpgradable = current >= upgradableVersion && current < schemaVersion;
  if (current !== 0 && !isUpgradable) throw createVersionError(current);
  for (const group of buildSchemaStatements(cluster)) {
    if (cluster === null) await Promise.all(group.map(run));
    // A Distributed table needs its stored table.
    else for (const query of group) await run(query);
  }
  await insertObjects(client, schemaMigrations.name, [{ version: schemaVersion, name: 'the whole schema' }]);
  return true;
}

export async function fetchWarehouseVersions(client: ClickHouseClient) {
  const query = 'SELECT version() AS server, max(version) AS schema FROM schema_migrations';
  const [found] = await selectRows<{ server: string; schema: number }>(client, query, {
    signal: createReadDeadline(),
  });
  return { version: found?.server ?? 'unknown', schema: Number(found?.schema ?? 0) };
}

/** IF NOT EXISTS would accept tables of the other kind. */
async function checkClusterMode(client: ClickHouseClient, cluster: ClusterName): Promise<void> {
  const query = `SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = '${schemaMigrations.name}'`;
  const [table] = await selectRows<{ engine: string }>(client, query);
  const isOnCluster = table?.engine === 'Distributed';
  if (isOnCluster && cluster === null)
    throw new StartError('the tables in ClickHouse belong to a cluster; set CLICKHOUSE_CLUSTER to its name');
  if (!isOnCluster && cluster !== null)
    throw new StartError(
      `the tables in ClickHouse were created without a cluster; use an empty database with CLICKHOUSE_CLUSTER=${cluster}`,
    );
}

function createVersionError(current: number): StartError {
  const found = `ClickHouse has schema version ${current}, but this version of the service`;
  return new StartError(
    current > schemaVersion
      ? `${found} supports only ${schemaVersion}; install the newer version`
      : `${found} needs ${upgradableVersion} to ${schemaVersion}; use an empty database`,
  );
}
