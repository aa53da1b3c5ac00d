/** The results as text for a terminal. */
import { aligned } from '../../src/lab/report/numbers.js';
import type { BenchResults, Latency, Measurement, ScenarioResult, Spread } from '../results.js';
import { partsInOrder } from './style.js';
import {
  acceptingCpu,
  againstBaseline,
  aimText,
  goalText,
  hasCost,
  isReached,
  laterCpu,
  ledgerProblems,
  machineText,
  noiseText,
  reachedText,
  runText,
  scenarioTitle,
  shown,
  spreadText,
  unmeasured,
  valueText,
  versionsText,
  wholeCpu,
} from './view.js';

/** Scenario by scenario, then the figures with goals; medians, with the smallest and largest in brackets. */
export function tableOf(results: BenchResults): string {
  const about = [runText, machineText, versionsText, noiseText].map((text) => text(results));
  const blocks = [
    about.filter((text) => text !== '').join('\n'),
    ...results.scenarios.map(scenarioBlock),
    goalBlock(results),
  ];
  return `${blocks.join('\n\n')}\n`;
}

function goalBlock(results: BenchResults): string {
  const rows = results.figures.map((figure) => [
    figure.name,
    valueText(figure, spreadText(figure.value)),
    goalText(figure),
    aimText(figure),
    reachedText(figure),
  ]);
  const table = aligned([['figure', 'value', 'must reach', 'aim', ''], ...rows]);
  const missing = unmeasured(results);
  const others = missing.length === 0 ? '' : `\nNot measured in this run: ${missing.join('; ')}`;
  return `Goals\n${table}\n${verdictOf(results)}${others}`;
}

function verdictOf({ figures }: BenchResults): string {
  const reached = figures.map(isReached).filter((verdict) => verdict !== null);
  return `${reached.filter(Boolean).length} of ${reached.length} goals reached`;
}

function scenarioBlock(scenario: ScenarioResult): string {
  const { about, measurements } = scenario;
  const parts = [
    `${scenarioTitle(scenario)}: ${about}`,
    costTable(scenario),
    ...measurements.flatMap(splitLines),
    latencyTable(measurements),
    ...measurements.flatMap(memoryLines),
    ...measurements.flatMap(pipelineLines),
    ...measurements.flatMap(ledgerLines),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

const orDash = (spread: Spread | null): string => (spread === null ? '-' : spreadText(spread));
const medianOrDash = (spread: Spread | null): string => (spread === null ? '-' : shown(spread.median));

function costTable(scenario: ScenarioResult): string {
  const { unit, measurements } = scenario;
  const rows = measurements.filter(hasCost).map((measurement) => costRow(scenario, measurement));
  const head = ['target', `${unit}s/s`, 'x echo', `CPU µs/${unit}`, 'x echo', 'and later'];
  return rows.length === 0 ? '' : aligned([head, ...rows]);
}

function costRow(scenario: ScenarioResult, measurement: Measurement): string[] {
  const ratios = againstBaseline(scenario, measurement);
  return [
    measurement.target,
    orDash(measurement.throughput),
    medianOrDash(ratios.throughput),
    orDash(acceptingCpu(measurement)),
    medianOrDash(ratios.cpu),
    orDash(laterCpu(measurement)),
  ];
}

/** Where CPU is not split, the total above says it all. */
function splitLines(measurement: Measurement): string[] {
  const { target, cpu } = measurement;
  const parts = partsInOrder(Object.keys(cpu));
  if (parts.length < 2) return [];
  const told = parts
    .filter((part) => part !== 'rest')
    .map((part) => `${part} ${medianOrDash(cpu[part] ?? null)}`);
  const sum = wholeCpu(measurement);
  return [
    `  ${target}, CPU: ${told.join(', ')}`,
    ...(sum
      ? [
          `  ${target}, sum of parts ${shown(sum.parts)} = all its processes ${shown(sum.whole)} - ${shown(sum.rest)} of other threads and children`,
        ]
      : []),
  ];
}

function memoryLines({ target, memory }: Measurement): string[] {
  const parts = Object.entries(memory).map(([part, size]) => `${part} ${shown(size)}`);
  return parts.length === 0 ? [] : [`  ${target}, memory in MB: ${parts.join(', ')}`];
}

function latencyTable(measurements: readonly Measurement[]): string {
  const rows = measurements.flatMap(({ target, latencies }) =>
    latencies.map((latency) => latencyRow(target, latency)),
  );
  const head = ['latency, ms', 'offered/s', 'achieved/s', 'refused/s', 'p50', 'p90', 'p99', 'p99.9', 'max'];
  return rows.length === 0 ? '' : aligned([head, ...rows]);
}

const latencyRow = (
  target: string,
  { offered, achieved, refused = 0, p50, p90, p99, p999, max }: Latency,
): string[] => [target, ...[offered, achieved, refused, p50, p90, p99, p999, max].map(shown)];

function pipelineLines({ target, pipeline }: Measurement): string[] {
  if (pipeline === null) return [];
  const { rowsPerSecond, lag } = pipeline;
  return [
    `  ${target}, pipeline: ${spreadText(rowsPerSecond)} rows/s into ClickHouse, lag ${spreadText(lag)} s`,
  ];
}

function ledgerLines({ target, ledger }: Measurement): string[] {
  if (ledger === null) return [];
  const problems = ledgerProblems(ledger);
  const told =
    problems.length === 0 ? 'each in Redis and in ClickHouse, once' : `WRONG: ${problems.join('; ')}`;
  return [`  ${target}, ledger: ${shown(ledger.acknowledged)} acknowledged, ${told}`];
}
