/**
 * The schema's history. A migration that was released is never edited: a change of a table module comes with a
 * new migration that alters what exists. Every statement may run again, also in several processes at once; the
 * number is recorded after the last one.
 */
import type { ClickHouseClient } from '@clickhouse/client';
import { attempts, fittedColumns, placedColumns } from './attempts.js';
import { selectRows } from './client.js';
import { cohortSkillWeekly, skillVelocity } from './cohorts.js';
import { forecastCoverage, forecastOutcomes } from './forecast-views.js';
import { goalChanges, servedForecasts, skillChanges } from './journal-tables.js';
import { forecasts, goals, skillCatalogue } from './journal-views.js';
import { modelVersions, skillParameters } from './models.js';
import { createMaterializedView, createView, rollups } from './rollups.js';
import { addColumns, createDescribedView, createTable, type Table } from './table.js';

interface Migration {
  version: number;
  name: string;
  statements: readonly string[];
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
};

/** Rollups exist before the first attempt, so that no view misses a row. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: 'attempts with daily rollups',
    statements: [
      createTable(attempts),
      ...rollups.flatMap((rollup) => [
        createTable(rollup.table),
        createMaterializedView(rollup),
        createView(rollup),
      ]),
    ],
  },
  {
    version: 2,
    name: 'fitted parameters',
    statements: [
      addColumns(attempts, fittedColumns, 'model_version'),
      createTable(modelVersions),
      createTable(skillParameters),
    ],
  },
  {
    version: 3,
    name: 'sections, goals, forecasts and cohorts',
    statements: [
      addColumns(attempts, placedColumns, 'recommendation_code'),
      ...[goalChanges, skillChanges, servedForecasts].map(createTable),
      ...[goals, skillCatalogue, forecasts, forecastOutcomes, forecastCoverage].map(createDescribedView),
      ...[cohortSkillWeekly, skillVelocity].map(createDescribedView),
    ],
  },
];

/**
 * Brings the database to this code's schema; does nothing when it is there.
 *
 * @returns the versions that were applied now
 * @throws SchemaTooNewError when a newer version of the service has been here
 */
export async function migrate(client: ClickHouseClient, steps = migrations): Promise<number[]> {
  await client.command({ query: createTable(schemaMigrations) });
  const current = await schemaVersion(client);
  const newest = steps.at(-1)?.version ?? 0;
  if (current > newest) throw new SchemaTooNewError(current, newest);
  const missing = steps.filter(({ version }) => version > current);
  for (const step of missing) await apply(client, step);
  return missing.map(({ version }) => version);
}

export class SchemaTooNewError extends Error {
  override readonly name = 'SchemaTooNewError';
  constructor(found: number, known: number) {
    super(
      `ClickHouse has schema version ${found}, this version of the service knows ${known}: install the newer one`,
    );
  }
}

async function schemaVersion(client: ClickHouseClient): Promise<number> {
  const [row] = await selectRows<{ version: number }>(
    client,
    'SELECT max(version) AS version FROM schema_migrations',
  );
  return row?.version ?? 0;
}

async function apply(client: ClickHouseClient, { version, name, statements }: Migration): Promise<void> {
  for (const query of statements) await client.command({ query });
  await client.command({
    query: 'INSERT INTO schema_migrations (version, name) SELECT {version:UInt32}, {name:String}',
    query_params: { version, name },
  });
}
