/** What table, page and comparison have in common: how results are summed, set against one another and told. */
import { grouped } from '../../src/lab/report/numbers.js';
import type { Row } from '../../src/lab/report/page.js';
import { goalNames } from '../goals.js';
import type { BenchResults, Figure, Ledger, Measurement, ScenarioResult, Spread } from '../results.js';
import { acceptingParts } from '../rounds.js';
import { spreadOf } from '../spread.js';

/** The peer that all others are set against: what the HTTP library and parsing cost by themselves. */
const baseline = 'echo';

/** With at most three significant digits below 1000, without decimals from there on. */
export const shown = (value: number): string =>
  Math.abs(value) >= 1000 ? grouped(Math.round(value)) : `${Number(value.toPrecision(3))}`;

/** A figure's value with its unit. */
export const valueText = ({ unit }: Figure, text: string): string => `${text} ${unit}`.trimEnd();

/** The median, with the smallest and the largest where the rounds differ. */
export function spreadText({ median, low, high }: Spread): string {
  const [middle, least, most] = [median, low, high].map(shown);
  return least === most ? `${middle}` : `${middle} [${least}, ${most}]`;
}

/** CPU microseconds until an answer is acknowledged; null where none was measured. */
export const acceptingCpu = ({ cpu }: Pick<Measurement, 'cpu'>): Spread | null =>
  sumOf(cpu, (part) => acceptingParts.includes(part));

/** CPU microseconds that the same answer takes afterwards, on its way to ClickHouse; null where none was measured. */
export const laterCpu = ({ cpu }: Pick<Measurement, 'cpu'>): Spread | null =>
  sumOf(cpu, (part) => !acceptingParts.includes(part));

function sumOf(cpu: Measurement['cpu'], counts: (part: string) => boolean): Spread | null {
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

/**
 * How often `of` holds `to`; null where one of them is 0. Both vary by themselves, so their relative spreads add up as
 * the squares of independent errors do.
 */
export function ratioOf(of: Spread, to: Spread): Spread | null {
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

/** The bare server in the same scenario; undefined where it did not take part. */
const baselineOf = ({ measurements }: ScenarioResult): Measurement | undefined =>
  measurements.find(({ target }) => target === baseline);

/** CPU until the answer and throughput against the bare server's in the same scenario; null where either was not measured. */
export function againstBaseline(
  scenario: ScenarioResult,
  measurement: Measurement,
): { cpu: Spread | null; throughput: Spread | null } {
  const bare = baselineOf(scenario);
  const ratio = (of: Spread | null, to: Spread | null): Spread | null => of && to && ratioOf(of, to);
  if (bare === undefined || bare === measurement) return { cpu: null, throughput: null };
  return {
    cpu: ratio(acceptingCpu(measurement), acceptingCpu(bare)),
    throughput: ratio(measurement.throughput, bare.throughput),
  };
}

const orDash = (spread: Spread | null): string => (spread === null ? '–' : spreadText(spread));
const medianOrDash = (spread: Spread | null): string => (spread === null ? '–' : shown(spread.median));

/** Throughput, its ratio to the echo, CPU until the answer, its ratio, CPU afterwards. */
export function costCells(scenario: ScenarioResult, measurement: Measurement): string[] {
  const ratios = againstBaseline(scenario, measurement);
  return [
    orDash(measurement.throughput),
    medianOrDash(ratios.throughput),
    orDash(acceptingCpu(measurement)),
    medianOrDash(ratios.cpu),
    orDash(laterCpu(measurement)),
  ];
}

/** The target, rates per second and milliseconds of each open loop. */
export const latencyRows = ({ measurements }: Pick<ScenarioResult, 'measurements'>): string[][] =>
  measurements.flatMap(({ target, latencies }) =>
    latencies.map(({ offered, achieved, refused = 0, p50, p90, p99, p999, max }) => [
      target,
      ...[offered, achieved, refused, p50, p90, p99, p999, max].map(shown),
    ]),
  );

export const figureCells = (figure: Figure): string[] => [
  figure.name,
  valueText(figure, spreadText(figure.value)),
  goalText(figure),
  figure.aim === undefined ? '' : shown(figure.aim),
];

/** Memory by part; null if none was measured. */
export function memoryText({ memory }: Measurement): string | null {
  const parts = Object.entries(memory).map(([part, size]) => `${part} ${shown(size)}`);
  return parts.length === 0 ? null : parts.join(', ');
}

/** Whether the median reaches the goal; null where there is none. */
export function isReached({ goal, value }: Pick<Figure, 'goal' | 'value'>): boolean | null {
  if (goal === null) return null;
  return 'atMost' in goal ? value.median <= goal.atMost : value.median >= goal.atLeast;
}

/** Whether the median reaches what is aimed at. */
const isAimReached = ({ value, goal, aim }: Figure): boolean =>
  aim !== undefined &&
  isReached({ value, goal: goal && 'atMost' in goal ? { atMost: aim } : { atLeast: aim } }) === true;

export const reachedText = (figure: Figure): string => {
  const reached = isReached(figure);
  if (reached === null) return '';
  return isAimReached(figure) ? 'aim reached' : reached ? 'reached' : 'MISSED';
};

/** Goals that the run did not measure. */
export const unmeasured = ({ figures }: BenchResults): string[] =>
  goalNames.filter((name) => !figures.some((figure) => figure.name === name));

/** How much the machine itself varied; empty where it was not looked at. */
export function noiseText({ noise }: BenchResults): string {
  if (noise === undefined || noise.cpu.length === 0) return '';
  const through = noise.cpu.map(shown).join(', ');
  const { low, high, median } = spreadOf(noise.cpu);
  const range = shown((100 * (high - low)) / median);
  return `bare echo, first, between the scenarios and last: ${through} µs of CPU (range ${range} % of the median), ${spreadText(spreadOf(noise.perSecond))} requests/s`;
}

/** CPU of all parts, `rest` included: that of the processes. Null where they are not split. */
export function wholeCpu({ cpu }: Measurement): { parts: number; rest: number; whole: number } | null {
  const rest = cpu.rest?.median;
  if (rest === undefined) return null;
  const whole = Object.values(cpu).reduce((sum, { median }) => sum + median, 0);
  return { parts: whole - rest, rest, whole };
}

export function goalText({ goal }: Figure): string {
  if (goal === null) return '';
  return 'atMost' in goal ? `≤ ${shown(goal.atMost)}` : `≥ ${shown(goal.atLeast)}`;
}

/** The scenario with its place on its axis, where it has one. */
export const scenarioTitle = ({ name, axis }: ScenarioResult): string =>
  axis === null ? name : `${name}, ${axis.label}: ${shown(axis.value)}`;

/** A row for each measurement that has cells, after the scenario and the target. */
export const measurementRows = (
  scenarios: readonly ScenarioResult[],
  cells: (measurement: Measurement, scenario: ScenarioResult) => Row | null,
): Row[] =>
  scenarios.flatMap((scenario) =>
    scenario.measurements.flatMap((measurement) => {
      const found = cells(measurement, scenario);
      return found === null ? [] : [[`${scenarioTitle(scenario)}, ${measurement.target}`, ...found]];
    }),
  );

/** Scenarios with those measurements alone that fit, where there are any. */
export const only = (
  scenarios: readonly ScenarioResult[],
  fits: (one: Measurement) => boolean,
): ScenarioResult[] =>
  scenarios
    .map((scenario) => ({ ...scenario, measurements: scenario.measurements.filter(fits) }))
    .filter(({ measurements }) => measurements.length > 0);

/** Scenarios in which targets can be compared side by side. */
export const contests = (scenarios: readonly ScenarioResult[]): ScenarioResult[] =>
  scenarios.filter(({ axis, measurements }) => axis === null && measurements.length > 1);

/** Whether throughput or CPU was measured, and not only latencies or memory. */
export const hasCost = ({ throughput, cpu }: Measurement): boolean =>
  throughput !== null || Object.keys(cpu).length > 0;

/** What is wrong with the books; empty where every answer is where it belongs, once. */
export function ledgerProblems(ledger: Ledger): string[] {
  const { acknowledged, unanswered, inRedis, inClickHouse, distinctInClickHouse } = ledger;
  const most = acknowledged + unanswered;
  const differences: readonly (readonly [count: number, problem: string])[] = [
    [acknowledged - inRedis, 'acknowledged are not in Redis'],
    [inRedis - most, 'more in Redis than were sent'],
    [inRedis - distinctInClickHouse, 'in Redis are not in ClickHouse'],
    [distinctInClickHouse - inRedis, 'more in ClickHouse than in Redis'],
    [inClickHouse - distinctInClickHouse, 'rows twice in ClickHouse'],
  ];
  return differences.flatMap(([count, problem]) => (count > 0 ? [`${grouped(count)} ${problem}`] : []));
}

/** When, in which form and of which commit, in a line. */
export const runText = ({ startedAt, form, commit }: BenchResults): string =>
  `${startedAt.slice(0, 16).replace('T', ' ')} UTC, ${form} form, ${commit === null ? 'no commit' : `commit ${commit}`}`;

export const machineText = ({ machine }: BenchResults): string =>
  `${machine.processor}, ${machine.cores} cores, ${shown(machine.memoryMb)} MB, ${machine.system}`;

export const versionsText = ({ versions }: BenchResults): string =>
  Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
