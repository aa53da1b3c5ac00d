import { computeSum } from '../../src/lists.js';
import type { BenchResults, Measurement, ScenarioResult, Spread } from '../results/results.js';
import { type BarRow, barFigure, createZeroAxis } from './bars.js';
import {
  buildMeasurementRows,
  compareWithBaseline,
  filterMeasurements,
  formatFigure,
  type Section,
  selectContests,
  sumAcceptingCpu,
  sumLaterCpu,
} from './section.js';
import { partColor, sortParts } from './style.js';

export function cpuSection({ scenarios }: BenchResults): Section {
  const measured = filterMeasurements(scenarios, ({ cpu }) => Object.keys(cpu).length > 0);
  const parts = sortParts(measured.flatMap(({ measurements }) => measurements.flatMap(partNames)));
  return {
    heading: 'CPU time',
    about:
      'CPU time of all processes per answer or request, including the kernel. The value after the plus sign is CPU time after the response, of the pipeline and of ClickHouse; the ratio to the echo excludes it. “rest” is CPU time of other threads and child processes. Shorter bars are better.',
    head: ['Medians, µs per unit', ...parts, 'All processes', 'Without rest'],
    rows: buildMeasurementRows(measured, ({ cpu }) => {
      const whole = computeSum(Object.values(cpu).map(({ median }) => median));
      const texts = parts.map((part) => (cpu[part] ? formatFigure(cpu[part].median) : '–'));
      return [[...texts, formatFigure(whole), formatFigure(whole - (cpu.rest?.median ?? 0))]];
    }),
    charts: () => [...selectContests(measured).map(targetsChart), ...scenariosCharts(measured)],
  };
}

const partNames = ({ cpu }: Measurement): string[] => Object.keys(cpu);

const targetsChart = (scenario: ScenarioResult): string =>
  stackChart(
    `${scenario.name}: CPU per ${scenario.unit}, by target`,
    scenario.unit,
    scenario.measurements.map((measurement) => {
      const ratio = compareWithBaseline(scenario, measurement).cpu;
      const suffix = ratio === null ? '' : `, ${formatFigure(ratio.median)} × echo`;
      return { name: measurement.target, measurement, suffix };
    }),
  );

const scenariosCharts = (scenarios: readonly ScenarioResult[]): string[] =>
  (['answer', 'request'] as const).flatMap((unit) => {
    const rows = scenarios
      .filter((scenario) => scenario.unit === unit && scenario.axis === null)
      .flatMap(({ name, measurements }) =>
        measurements
          .filter(({ target }) => target === 'skilltrace')
          .map((measurement) => ({ name, measurement })),
      );
    return rows.length < 2 ? [] : [stackChart(`skilltrace: CPU per ${unit}, by scenario`, unit, rows)];
  });

interface StackRow {
  readonly name: string;
  readonly measurement: Measurement;
  readonly suffix?: string;
}

function stackChart(title: string, unit: string, stacks: readonly StackRow[]): string {
  const rows = stacks.map(
    ({ name, measurement, suffix = '' }): BarRow => ({
      name,
      value: `${formatTotal(measurement)} µs${suffix}`,
      parts: stackParts(measurement),
    }),
  );
  const names = sortParts(stacks.flatMap(({ measurement }) => partNames(measurement)));
  return barFigure({
    title,
    x: createZeroAxis(rows, `µs of CPU per ${unit}`),
    colors: Object.fromEntries(names.map((name) => [name, partColor(name)])),
    legend: true,
    rows,
  });
}

/** Before and after the response. */
const formatTotal = (measurement: Measurement): string =>
  [sumAcceptingCpu(measurement), sumLaterCpu(measurement)]
    .flatMap((sum) => (sum === null ? [] : [formatFigure(sum.median)]))
    .join(' + ');

function stackParts({ cpu }: Measurement): BarRow['parts'] {
  let to = 0;
  return sortParts(Object.keys(cpu)).map((part) => {
    const { median } = cpu[part] as Spread;
    const from = to;
    to += median;
    return { from, to, series: part, note: `${part} ${formatFigure(median)} µs` };
  });
}
