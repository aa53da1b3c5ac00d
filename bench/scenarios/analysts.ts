import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { StartError } from '../../src/lifecycle.js';
import { selectNumber, selectRows } from '../../src/warehouse/clickhouse/client.js';
import { type Bench, startDedicatedService } from '../measurement/bench.js';
import type { Scenario } from '../measurement/scenario.js';
import { createPlainFigure } from '../results/goals.js';
import type { Figure } from '../results/results.js';
import { computeSpread } from '../results/spread.js';
import type { Service } from '../targets/service.js';
import {
  countAnswers,
  generateAnswers,
  generateForecasts,
  queryAsAnalyst,
  type School,
} from './clickhouse-school.js';

/** The usual case, and the worst: almost every answer is on another skill. */
const schools: readonly (School & { readonly seconds: number })[] = [
  { tenant: 'usual', learners: 20_000, days: 25, perDay: 20, perSkill: 5, seconds: 1 },
  { tenant: 'scattered', learners: 50_000, days: 40, perDay: 5, perSkill: 1, seconds: 3 },
];

const views = `learner_skill_daily learner_skill_total skill_daily cohort_skill_weekly skill_velocity
  forecasts forecast_outcomes forecast_coverage`.split(/\s+/);

/** The smallest sufficient limit is reported. */
const memoryLimitsMb = [125, 250, 500, 1000, 2000];
const maxMegabytes = 500;

export const analysts: Scenario = {
  name: 'analysts',
  about: 'analyst queries that read each view completely, for two schools of 10,000,000 answers',
  isLong: true,
  run: async (bench) => {
    const service = await startDedicatedService(bench, 'analysts');
    const figures: Figure[] = [];
    for (const school of schools) {
      await fillSchool(bench, service, school);
      figures.push(await measureBytes(service, school));
      for (const view of views) figures.push(...(await measureView(bench, service, view, school)));
      // The next school needs empty tables.
      for (const table of await listTables(service))
        await service.clickhouse.command({ query: `TRUNCATE TABLE ${table}` });
    }
    return { measurements: [], figures };
  },
};

async function fillSchool({ progress }: Bench, { clickhouse }: Service, school: School): Promise<void> {
  await generateAnswers(clickhouse, school, async (day) => {
    progress(`${school.tenant}, day ${day + 1} of ${school.days}`);
    if (day === school.days - 2) await mergeSums(clickhouse);
  });
  await generateForecasts(clickhouse, school);
  progress('waiting for merges');
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

const listTables = async ({ clickhouse }: Service): Promise<string[]> => {
  const query =
    "SELECT DISTINCT table FROM system.parts WHERE database = currentDatabase() AND active AND table != 'schema_migrations'";
  return (await selectRows<{ table: string }>(clickhouse, query)).map(({ table }) => table);
};

async function measureBytes({ clickhouse }: Service, school: School): Promise<Figure> {
  const query = `SELECT sum(bytes_on_disk) FROM system.parts
    WHERE database = currentDatabase() AND active AND table NOT IN ('attempts', 'served_forecasts')`;
  const bytes = (await selectNumber(clickhouse, query)) / countAnswers(school);
  const name = `${school.tenant}: disk space of all rollups`;
  return createPlainFigure(name, 'per answer', 'bytes', computeSpread([bytes]));
}

async function measureView(
  { settings, progress }: Bench,
  service: Service,
  view: string,
  { tenant, seconds }: (typeof schools)[number],
): Promise<Figure[]> {
  progress(`${tenant}, ${view}`);
  // Computes all columns and sends none.
  const query = `SELECT count() FROM (SELECT * FROM ${view} WHERE tenant = '${tenant}') WHERE NOT ignore(*)`;
  const sufficientMb = await findMemoryLimit(service, query);
  const times: number[] = [];
  for (let round = 0; round < settings.side.rounds && sufficientMb !== null; round++) {
    const since = performance.now();
    await queryAsAnalyst(service.analystUrl, query);
    times.push((performance.now() - since) / 1000);
  }
  const rows =
    sufficientMb === null
      ? 'the query exceeds its limits'
      : `${await queryAsAnalyst(service.analystUrl, query)}`.trim();
  const time = computeSpread(sufficientMb === null ? [60] : times);
  const memory = computeSpread([sufficientMb ?? 2 * (memoryLimitsMb.at(-1) as number)]);
  const least = 'smallest sufficient memory limit';
  return [
    createPlainFigure(`${tenant}: ${view}`, `${rows} rows`, 's', time, { atMost: seconds }),
    createPlainFigure(`${tenant}: memory of ${view}`, least, 'MB', memory, { atMost: maxMegabytes }),
  ];
}

/** @returns null if no limit suffices, or a minute does not */
async function findMemoryLimit({ analystUrl }: Service, query: string): Promise<number | null> {
  for (const limitMb of memoryLimitsMb) {
    try {
      await queryAsAnalyst(analystUrl, query, { max_memory_usage: `${limitMb * 1_000_000}` });
      return limitMb;
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      if (!/MEMORY_LIMIT_EXCEEDED/.test(error.message)) return null;
    }
  }
  return null;
}
