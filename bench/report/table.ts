/** The results as text for a terminal. */
import { aligned } from '../../src/lab/report/numbers.js';
import type { BenchResults, Measurement, ScenarioResult } from '../results.js';
import { partsInOrder } from './style.js';
import {
  costCells,
  figureCells,
  hasCost,
  isReached,
  latencyRows,
  ledgerProblems,
  machineText,
  memoryText,
  noiseText,
  reachedText,
  runText,
  scenarioTitle,
  shown,
  spreadText,
  unmeasured,
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
  const rows = results.figures.map((figure) => [...figureCells(figure), reachedText(figure)]);
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
  const notes = (textsOf: (measurement: Measurement) => readonly string[]): string[] =>
    measurements.flatMap((one) => textsOf(one).map((text) => `  ${one.target}, ${text}`));
  const parts = [
    `${scenarioTitle(scenario)}: ${about}`,
    costTable(scenario),
    ...notes(splitTexts),
    latencyTable(scenario),
    ...notes(memoryTexts),
    ...notes(pipelineTexts),
    ...notes(ledgerTexts),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

function costTable(scenario: ScenarioResult): string {
  const { unit, measurements } = scenario;
  const rows = measurements.filter(hasCost).map((one) => [one.target, ...costCells(scenario, one)]);
  const head = ['target', `${unit}s/s`, 'x echo', `CPU µs/${unit}`, 'x echo', 'and later'];
  return rows.length === 0 ? '' : aligned([head, ...rows]);
}

/** Empty if CPU is not split: the table has the total. */
function splitTexts(measurement: Measurement): string[] {
  const { cpu } = measurement;
  const parts = partsInOrder(Object.keys(cpu));
  if (parts.length < 2) return [];
  const shares = parts
    .filter((part) => part !== 'rest')
    .map((part) => `${part} ${shown(cpu[part]?.median ?? 0)}`);
  const split = `CPU: ${shares.join(', ')}`;
  const sum = wholeCpu(measurement);
  if (sum === null) return [split];
  const whole = `all its processes ${shown(sum.whole)} - ${shown(sum.rest)} of other threads and children`;
  return [split, `sum of parts ${shown(sum.parts)} = ${whole}`];
}

function memoryTexts(measurement: Measurement): string[] {
  const text = memoryText(measurement);
  return text === null ? [] : [`memory in MB: ${text}`];
}

function latencyTable(scenario: ScenarioResult): string {
  const rows = latencyRows(scenario);
  const head = ['latency, ms', 'offered/s', 'achieved/s', 'refused/s', 'p50', 'p90', 'p99', 'p99.9', 'max'];
  return rows.length === 0 ? '' : aligned([head, ...rows]);
}

function pipelineTexts({ pipeline }: Measurement): string[] {
  if (pipeline === null) return [];
  const { rowsPerSecond, lag } = pipeline;
  return [`pipeline: ${spreadText(rowsPerSecond)} rows/s into ClickHouse, lag ${spreadText(lag)} s`];
}

function ledgerTexts({ ledger }: Measurement): string[] {
  if (ledger === null) return [];
  const problems = ledgerProblems(ledger);
  const verdict =
    problems.length === 0 ? 'each in Redis and in ClickHouse, once' : `WRONG: ${problems.join('; ')}`;
  return [`ledger: ${shown(ledger.acknowledged)} acknowledged, ${verdict}`];
}
