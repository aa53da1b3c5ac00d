import { formatNumber } from '../../src/lab/report/format.js';
import type { Row } from '../../src/lab/report/page.js';
import { acceptingParts } from '../measurement/rounds.js';
import type { BenchResults, Ledger, Measurement, ScenarioResult, Spread } from '../results/results.js';
import { computeSpread } from '../results/spread.js';

export interface Section {
  readonly heading: string;
  readonly about: string;
  /** Sentences about this run. */
  readonly notes?: readonly string[];
  readonly head: readonly string[];
  readonly rows: readonly Row[];
  readonly charts?: () => readonly string[];
}

/** The echo costs only HTTP and parsing. */
const baseline = 'echo';

/** Three significant digits below 1000, no decimals above. */
export const formatFigure = (value: number): string =>
  Math.abs(value) >= 1000 ? formatNumber(Math.round(value)) : `${Number(value.toPrecision(3))}`;

/** Adds smallest and largest value if they differ. */
export function formatSpread({ median, low, high }: Spread): string {
  const [middle, least, most] = [median, low, high].map(formatFigure);
  return least === most ? `${middle}` : `${middle} [${least}, ${most}]`;
}

/** CPU µs until the response; null if not measured. */
export const sumAcceptingCpu = ({ cpu }: Pick<Measurement, 'cpu'>): Spread | null =>
  sumParts(cpu, (part) => acceptingParts.includes(part));

/** CPU µs after the response; null if not measured. */
export const sumLaterCpu = ({ cpu }: Pick<Measurement, 'cpu'>): Spread | null =>
  sumParts(cpu, (part) => !acceptingParts.includes(part));

function sumParts(cpu: Measurement['cpu'], counts: (part: string) => boolean): Spread | null {
  const parts = Object.entries(cpu).flatMap(([part, spread]) => (counts(part) ? [spread] : []));
  const sum = (of: (part: Spread) => number): number => parts.reduce((total, part) => total + of(part), 0);
  if (parts.length === 0) return null;
  return {
    median: sum(({ median }) => median),
    low: sum(({ low }) => low),
    high: sum(({ high }) => high),
    rounds: Math.min(...parts.map(({ rounds }) => rounds)),
  };
}

/** Null if a median is 0. Relative spreads add up like independent errors. */
export function computeRatio(of: Spread, to: Spread): Spread | null {
  if (of.median === 0 || to.median === 0) return null;
  const median = of.median / to.median;
  const up = Math.hypot(of.high / of.median - 1, 1 - to.low / to.median);
  const down = Math.hypot(1 - of.low / of.median, to.high / to.median - 1);
  return {
    median,
    low: Math.max(0, median * (1 - down)),
    high: median * (1 + up),
    rounds: Math.min(of.rounds, to.rounds),
  };
}

/** Ratios to the echo of the scenario; null if not measured. */
export function compareWithBaseline(
  scenario: ScenarioResult,
  measurement: Measurement,
): { cpu: Spread | null; throughput: Spread | null } {
  const bare = scenario.measurements.find(({ target }) => target === baseline);
  const ratio = (of: Spread | null, to: Spread | null): Spread | null => of && to && computeRatio(of, to);
  if (bare === undefined || bare === measurement) return { cpu: null, throughput: null };
  return {
    cpu: ratio(sumAcceptingCpu(measurement), sumAcceptingCpu(bare)),
    throughput: ratio(measurement.throughput, bare.throughput),
  };
}

export function formatNoise({ noise }: BenchResults): string {
  if (noise === undefined || noise.cpu.length === 0) return 'not measured';
  const through = noise.cpu.map(formatFigure).join(', ');
  const { low, high, median } = computeSpread(noise.cpu);
  const range = formatFigure((100 * (high - low)) / median);
  return `echo before, between and after the scenarios: ${through} µs of CPU (range ${range} % of the median), ${formatSpread(computeSpread(noise.perSecond))} requests/s`;
}

export const formatScenarioTitle = ({ name, axis }: ScenarioResult): string =>
  axis === null ? name : `${name}, ${axis.label}: ${formatFigure(axis.value)}`;

export const buildMeasurementRows = (
  scenarios: readonly ScenarioResult[],
  rowsOf: (measurement: Measurement, scenario: ScenarioResult) => readonly Row[],
): Row[] =>
  scenarios.flatMap((scenario) =>
    scenario.measurements.flatMap((measurement) => {
      const name = `${formatScenarioTitle(scenario)}, ${measurement.target}`;
      return rowsOf(measurement, scenario).map((row) => [name, ...row]);
    }),
  );

export const filterMeasurements = (
  scenarios: readonly ScenarioResult[],
  matches: (one: Measurement) => boolean,
): ScenarioResult[] =>
  scenarios
    .map((scenario) => ({ ...scenario, measurements: scenario.measurements.filter(matches) }))
    .filter(({ measurements }) => measurements.length > 0);

export const selectContests = (scenarios: readonly ScenarioResult[]): ScenarioResult[] =>
  scenarios.filter(({ axis, measurements }) => axis === null && measurements.length > 1);

/** Empty if each answer is stored exactly once. */
export function findLedgerProblems(ledger: Ledger): string[] {
  const { acknowledged, unanswered, inRedis, inClickHouse, distinctInClickHouse } = ledger;
  const most = acknowledged + unanswered;
  const differences: readonly (readonly [count: number, problem: string])[] = [
    [acknowledged - inRedis, 'acknowledged answers missing in Redis'],
    [inRedis - most, 'answers in Redis that were not sent'],
    [inRedis - distinctInClickHouse, 'answers of Redis missing in ClickHouse'],
    [distinctInClickHouse - inRedis, 'answers of ClickHouse missing in Redis'],
    [inClickHouse - distinctInClickHouse, 'duplicate rows in ClickHouse'],
  ];
  return differences.flatMap(([count, problem]) => (count > 0 ? [`${formatNumber(count)} ${problem}`] : []));
}

export const formatRun = ({ startedAt, form, commit }: BenchResults): string =>
  `${startedAt.slice(0, 16).replace('T', ' ')} UTC, ${form} form, ${commit === null ? 'no commit' : `commit ${commit}`}`;
