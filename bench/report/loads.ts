/** Throughput, latency and CPU time of each target: the peers in one section, other scenarios in another. */
import type { Row } from '../../src/lab/report/page.js';
import {
  type BenchResults,
  type Measurement,
  peersScenario,
  type ScenarioResult,
  type Spread,
} from '../results/results.js';
import { computeRatioSpread } from '../results/spread.js';
import { missingPostgres } from '../targets/postgres.js';
import { spreadChart } from './bars.js';
import { cpuChart } from './cpu.js';
import {
  buildMeasurementRows,
  formatFigure,
  formatRatio,
  formatSpread,
  formatTarget,
  orDash,
  type Section,
  selectContests,
  sumAcceptingCpu,
  sumCpu,
  sumLaterCpu,
} from './section.js';

const columns = [
  ...['Per second', 'p50, ms', 'p99, ms'],
  ...['CPU until confirmed, µs', 'Warehouse, µs', 'Sum, µs'],
];

const isPeers = ({ name }: ScenarioResult): boolean => name === peersScenario;

const differences = [
  'The Fastify peers check an API key and a JSON schema, and update one skill with fixed parameters; they have no quotas, items, several skills, fitted parameters, forecasts, trends, webhooks and rows in a warehouse for analysts',
  '“echo” stores nothing; “fastify” has no event ids and no rows of attempts, and loses concurrent updates',
  '“fastify-outbox” has the service’s guarantees, in one Lua script; it keeps event ids for a day, and its rows remain in a Redis stream',
  '“fastify-postgres” has the same guarantees in a transaction of BEGIN, five prepared statements and COMMIT, and “fastify-postgres-function” in one prepared call of a function; their rows remain in a table of PostgreSQL',
  'Both use ten connections and synchronous_commit=off, as Redis with appendfsync everysec; the suffix “-sync” means synchronous_commit=on',
];

export function peersSection({ scenarios }: BenchResults): Section {
  const peers = scenarios.filter(isPeers);
  const measurements = peers.flatMap((scenario) => scenario.measurements);
  const hasPostgres = measurements.some(({ cpu }) => cpu.postgres !== undefined);
  return {
    heading: 'Peers',
    about:
      'Single answers at saturation (closed loop) and at fixed rates (open loop). Warehouse is the CPU time of the pipeline and of ClickHouse. The ratio compares the sums round by round. Shorter bars of CPU time are better.',
    notes: measurements.length === 0 || hasPostgres ? differences : [missingPostgres, ...differences],
    head: ['Target', ...columns, 'Sum, relative to skilltrace'],
    rows: measurements.map((measurement) => [
      formatTarget(measurement),
      ...costCells(measurement, measurements, 'skilltrace'),
    ]),
    charts: () => peers.flatMap(splitByLoad).flatMap((load) => [cpuChart(load), ...loadCharts(load)]),
  };
}

/** One scenario for each offered rate. */
function splitByLoad(scenario: ScenarioResult): ScenarioResult[] {
  const rates = new Set(scenario.measurements.map(({ offered }) => offered));
  return [...rates].map((rate) => ({
    ...scenario,
    name: rate === null ? 'saturation' : `${formatFigure(rate)} per second`,
    measurements: scenario.measurements.filter(({ offered }) => offered === rate),
  }));
}

export function loadsSection({ scenarios }: BenchResults): Section {
  const others = scenarios.filter((scenario) => !isPeers(scenario));
  return {
    heading: 'Loads',
    about:
      'In a closed loop, every connection sends its next request when the response arrives. Values are per answer, or per request if the load also reads. In an open loop, requests have fixed times, and latency counts from the scheduled time, so it includes waiting. Thin lines show the interval of the median.',
    head: ['Scenario, target', ...columns, 'Sum, relative to echo'],
    rows: buildMeasurementRows(others, (measurement, scenario): Row[] =>
      measurement.latency === null ? [] : [costCells(measurement, scenario.measurements, 'echo')],
    ),
    charts: () => selectContests(others).flatMap(loadCharts),
  };
}

function costCells(one: Measurement, all: readonly Measurement[], baseline: string): string[] {
  const bare = all.find(({ target, offered }) => target === baseline && offered === one.offered);
  const { throughput, latency } = one;
  return [
    orDash(throughput, formatSpread),
    ...[latency?.p50, latency?.p99].map((value) => orDash(value ?? null, formatSpread)),
    ...[sumAcceptingCpu(one), sumLaterCpu(one), sumCpu(one)].map((sum) => orDash(sum, formatSpread)),
    bare === undefined || bare === one ? '' : orDash(compareCpu(one, bare), formatRatio),
  ];
}

function compareCpu(one: Measurement, other: Measurement): Spread | null {
  const [mine, theirs] = [sumCpu(one), sumCpu(other)];
  return mine && theirs && computeRatioSpread(mine.values, theirs.values);
}

/** Throughput of a closed loop, p99 of an open loop. */
function loadCharts({ name, unit, measurements }: ScenarioResult): string[] {
  const bars = (pick: (one: Measurement) => Spread | null | undefined, offered: boolean) =>
    measurements.flatMap((one) => {
      const value = (one.offered !== null) === offered ? pick(one) : null;
      return value ? [{ name: formatTarget(one), target: one.target, value }] : [];
    });
  return [
    ...spreadChart(
      `${name}: ${unit}s per second`,
      `${unit}s per second`,
      bars((one) => one.throughput, false),
    ),
    ...spreadChart(
      `${name}: p99`,
      'milliseconds',
      bars((one) => one.latency?.p99, true),
    ),
  ];
}
