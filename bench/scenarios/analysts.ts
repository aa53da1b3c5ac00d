import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { StartError } from '../../src/lifecycle.js';
import { selectNumber, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { type Bench, ownService } from '../bench.js';
import { shownFigure } from '../goals.js';
import type { Figure } from '../results.js';
import type { Scenario } from '../scenario.js';
import { answersOf, askAsAnalyst, makeAnswers, makeForecasts, type School } from '../school.js';
import type { Service } from '../service.js';
import { spreadOf } from '../spread.js';

/** The usual case, and the worst: almost every answer is on another skill. */
const schools: readonly (School & { readonly seconds: number })[] = [
  { tenant: 'usual', learners: 20_000, days: 25, perDay: 20, perSkill: 5, seconds: 1 },
  { tenant: 'scattered', learners: 50_000, days: 40, perDay: 5, perSkill: 1, seconds: 3 },
];

const views = `learner_skill_daily learner_skill_total skill_daily cohort_skill_weekly skill_velocity
  forecasts forecast_outcomes forecast_coverage`.split(/\s+/);

/** The smallest sufficient limit is reported. */
const megabytes = [125, 250, 500, 1000, 2000];
const mostMegabytes = 500;

export const analysts: Scenario = {
  name: 'analysts',
  about: 'every view whole, as an analyst, of a tenant with 10,000,000 answers of two schools',
  long: true,
  run: async (bench) => {
    const service = await ownService(bench, 'analysts');
    const figures: Figure[] = [];
    for (const school of schools) {
      await make(bench, service, school);
      figures.push(await bytesOf(service, school));
      for (const view of views) figures.push(...(await measure(bench, service, view, school)));
      // The next school needs empty tables.
      for (const table of await tablesOf(service))
        await service.clickhouse.command({ query: `TRUNCATE TABLE ${table}` });
    }
    return { results: [], figures };
  },
};

async function make({ progress }: Bench, { clickhouse }: Service, school: School): Promise<void> {
  await makeAnswers(clickhouse, school, async (day) => {
    progress(`${school.tenant}, day ${day + 1} of ${school.days}`);
    if (day === school.days - 2) await mergeSums(clickhouse);
  });
  await makeForecasts(clickhouse, school);
  progress('parts are merged');
  const merging = 'SELECT count() FROM system.merges WHERE database = currentDatabase()';
  do await sleep(2000);
  while ((await selectNumber(clickhouse, merging)) > 0);
}

/** In production, all but the last hours of answers would be merged. */
async function mergeSums(clickhouse: ClickHouseClient): Promise<void> {
  const sums = `SELECT name FROM system.tables
    WHERE database = currentDatabase() AND engine = 'AggregatingMergeTree'`;
  for (const { name } of await selectRows<{ name: string }>(clickhouse, sums))
    await clickhouse.command({ query: `OPTIMIZE TABLE ${name} FINAL` });
}

const tablesOf = async ({ clickhouse }: Service): Promise<string[]> => {
  const query =
    "SELECT DISTINCT table FROM system.parts WHERE database = currentDatabase() AND active AND table != 'schema_migrations'";
  return (await selectRows<{ table: string }>(clickhouse, query)).map(({ table }) => table);
};

async function bytesOf({ clickhouse }: Service, school: School): Promise<Figure> {
  const query = `SELECT sum(bytes_on_disk) FROM system.parts
    WHERE database = currentDatabase() AND active AND table NOT IN ('attempts', 'served_forecasts')`;
  const bytes = (await selectNumber(clickhouse, query)) / answersOf(school);
  const name = `${school.tenant}: bytes of all sums`;
  return shownFigure(name, 'an answer, on the disk', 'bytes', spreadOf([bytes]));
}

async function measure(
  { settings, progress }: Bench,
  service: Service,
  view: string,
  { tenant, seconds }: (typeof schools)[number],
): Promise<Figure[]> {
  progress(`${tenant}, ${view}`);
  // Computes all columns and sends none.
  const query = `SELECT count() FROM (SELECT * FROM ${view} WHERE tenant = '${tenant}') WHERE NOT ignore(*)`;
  const enough = await memoryOf(service, query);
  const times: number[] = [];
  for (let round = 0; round < settings.glance.rounds && enough !== null; round++) {
    const since = performance.now();
    await askAsAnalyst(service.analystUrl, query);
    times.push((performance.now() - since) / 1000);
  }
  const rows =
    enough === null ? 'it ends in its limits' : `${await askAsAnalyst(service.analystUrl, query)}`.trim();
  const time = spreadOf(enough === null ? [60] : times);
  const memory = spreadOf([enough ?? 2 * (megabytes.at(-1) as number)]);
  const least = 'the least bound that is enough';
  return [
    shownFigure(`${tenant}: ${view}`, `${rows} rows`, 's', time, { atMost: seconds }),
    shownFigure(`${tenant}: memory of ${view}`, least, 'MB', memory, { atMost: mostMegabytes }),
  ];
}

/** @returns null if no limit suffices, or a minute does not */
async function memoryOf({ analystUrl }: Service, query: string): Promise<number | null> {
  for (const bound of megabytes) {
    try {
      await askAsAnalyst(analystUrl, query, { max_memory_usage: `${bound * 1_000_000}` });
      return bound;
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      if (!/MEMORY_LIMIT_EXCEEDED/.test(error.message)) return null;
    }
  }
  return null;
}
