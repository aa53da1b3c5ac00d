import { formatNumber } from '../../src/lab/report/format.js';
import type { Row } from '../../src/lab/report/page.js';
import { acceptingParts } from '../measurement/rounds.js';
import type { BenchResults, Ledger, Measurement, ScenarioResult, Spread } from '../results/results.js';
import { computeSpread, computeSumSpread, minRounds } from '../results/spread.js';

export interface Section {
  readonly heading: string;
  readonly about: string;
  /** Sentences about this run. */
  readonly notes?: readonly string[];
  readonly head: readonly string[];
  readonly rows: readonly Row[];
  readonly charts?: () => readonly string[];
}

/** Three significant digits below 1000, no decimals above. */
export const formatFigure = (value: number): string =>
  Math.abs(value) >= 1000 ? formatNumber(Math.round(value)) : `${Number(value.toPrecision(3))}`;

/** Adds the interval of the median if it has a width. */
export function formatSpread({ median, low, high }: Spread): string {
  const [middle, least, most] = [median, low, high].map(formatFigure);
  return least === most ? `${middle}` : `${middle} [${least}, ${most}]`;
}

/** @param ratio computed round by round */
export function formatRatio({ median, low, high, values }: Spread): string {
  const interval = `[${formatFigure(low)}, ${formatFigure(high)}]`;
  if (values.length < minRounds) return `too few rounds ${interval}`;
  if (low <= 1 && high >= 1) return `no difference ${interval}`;
  return `${formatFigure(median)} times ${interval}`;
}

export const orDash = (value: Spread | null, format: (value: Spread) => string): string =>
  value === null ? '–' : format(value);

type Cpu = Pick<Measurement, 'cpu'>;

/** CPU µs of all parts; null if not measured. */
export const sumCpu = ({ cpu }: Cpu): Spread | null => sumParts(Object.values(cpu));

/** CPU µs until the response; null if not measured. */
export const sumAcceptingCpu = ({ cpu }: Cpu): Spread | null =>
  sumParts(selectParts(cpu, (part) => acceptingParts.includes(part)));

/** CPU µs after the response; null if not measured. */
export const sumLaterCpu = ({ cpu }: Cpu): Spread | null =>
  sumParts(selectParts(cpu, (part) => !acceptingParts.includes(part)));

const selectParts = (cpu: Measurement['cpu'], counts: (part: string) => boolean): Spread[] =>
  Object.entries(cpu).flatMap(([part, spread]) => (counts(part) ? [spread] : []));

const sumParts = (parts: readonly Spread[]): Spread | null =>
  parts.length === 0 ? null : computeSumSpread(parts);

export function formatNoise({ noise }: BenchResults): string {
  if (noise.cpu.length === 0) return 'not measured';
  const through = noise.cpu.map(formatFigure).join(', ');
  const range = (Math.max(...noise.cpu) - Math.min(...noise.cpu)) / computeSpread(noise.cpu).median;
  return `echo before, between and after the scenarios: ${through} µs of CPU (range ${formatFigure(100 * range)} % of the median), ${formatSpread(computeSpread(noise.perSecond))} requests/s`;
}

/** With the rate of an open loop. */
export const formatTarget = ({ target, offered }: Measurement): string =>
  offered === null ? target : `${target}, ${formatFigure(offered)}/s`;

export const buildMeasurementRows = (
  scenarios: readonly ScenarioResult[],
  rowsOf: (measurement: Measurement, scenario: ScenarioResult) => readonly Row[],
): Row[] =>
  scenarios.flatMap((scenario) =>
    scenario.measurements.flatMap((measurement) => {
      const name = `${scenario.name}, ${formatTarget(measurement)}`;
      return rowsOf(measurement, scenario).map((row) => [name, ...row]);
    }),
  );

/** Scenarios with several targets. */
export const selectContests = (scenarios: readonly ScenarioResult[]): ScenarioResult[] =>
  scenarios.filter(({ measurements }) => measurements.length > 1);

/** Empty if each answer is stored exactly once. */
export function findLedgerProblems(ledger: Ledger): string[] {
  const { acknowledged, inRedis, inClickHouse, distinctInClickHouse } = ledger;
  const differences: readonly (readonly [count: number, problem: string])[] = [
    [acknowledged - inRedis, 'acknowledged answers missing in Redis'],
    [inRedis - acknowledged, 'answers in Redis that were not sent'],
    [inRedis - distinctInClickHouse, 'answers of Redis missing in ClickHouse'],
    [distinctInClickHouse - inRedis, 'answers of ClickHouse missing in Redis'],
    [inClickHouse - distinctInClickHouse, 'duplicate rows in ClickHouse'],
  ];
  return differences.flatMap(([count, problem]) => (count > 0 ? [`${formatNumber(count)} ${problem}`] : []));
}

export const formatRun = ({ startedAt, form, commit }: BenchResults): string =>
  `${startedAt.slice(0, 16).replace('T', ' ')} UTC, ${form} form, ${commit === null ? 'no commit' : `commit ${commit}`}`;
