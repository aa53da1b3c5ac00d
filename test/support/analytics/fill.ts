import type { ClickHouseClient } from '@clickhouse/client';
import { encodeForecastRow, encodeGoalRow, encodeSkillRow } from '../../../src/contracts/journal/journal.js';
import { formatSqlTime } from '../../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../../src/warehouse/ingest/attempt-warehouse.js';
import { createJournalWarehouse } from '../../../src/warehouse/ingest/journal-warehouse.js';
import { encodedRows } from '../builders/attempt-rows.js';
import type { School } from './school.js';

/** Stores a school as the service would, and half of it once more for a tenant whom no query asks for. */
export async function fillSchool(client: ClickHouseClient, school: School): Promise<void> {
  await fill(client, school);
  const other = { tenant: 'other' };
  await fill(client, {
    answers: school.answers.filter((_, i) => i % 2 === 0).map((answer) => ({ ...answer, ...other })),
    forecasts: school.forecasts.slice(9).map((forecast) => ({ ...forecast, ...other })),
    goals: school.goals.slice(3).map(({ at, change }) => ({ at, change: { ...change, ...other } })),
    catalogue: school.catalogue.slice(1).map(({ at, change }) => ({ at, change: { ...change, ...other } })),
    versions: school.versions.slice(1).map((version) => ({ ...version, ...other })),
    parameters: school.parameters.slice(2).map((parameters) => ({ ...parameters, ...other })),
  });
}

let fills = 0;

async function fill(client: ClickHouseClient, school: School): Promise<void> {
  fills += 1;
  await createAttemptWarehouse(client).insert(
    [encodedRows(school.answers, 100_000 * fills)],
    `school ${fills}`,
  );
  const journal = createJournalWarehouse(client);
  const lines = (texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text));
  await journal.insert('forecast', lines(school.forecasts.map(encodeForecastRow)));
  await journal.insert(
    'goal',
    lines(school.goals.map(({ at, change }) => `${at}\t${encodeGoalRow(change)}`)),
  );
  await journal.insert(
    'skill',
    lines(school.catalogue.map(({ at, change }, i) => `${i + 1}\t${at}\t${encodeSkillRow(change)}`)),
  );
  const versions = school.versions.map((row) => ({ ...row, published_at: formatSqlTime(row.published_at) }));
  await client.insert({ table: 'model_versions', format: 'JSONEachRow', values: versions });
  await client.insert({ table: 'skill_parameters', format: 'JSONEachRow', values: [...school.parameters] });
}
