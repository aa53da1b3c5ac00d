import { computeSum } from '../../src/lists.js';
import type { BenchResults, Measurement, ScenarioResult, Spread } from '../results.js';
import { type BarRow, barFigure, fromZero } from './bars.js';
import { partColor, partsInOrder } from './style.js';
import {
  acceptingCpu,
  againstBaseline,
  contests,
  laterCpu,
  measurementRows,
  only,
  type Section,
  shown,
} from './view.js';

export function cpuSection({ scenarios }: BenchResults): Section {
  const measured = only(scenarios, ({ cpu }) => Object.keys(cpu).length > 0);
  const parts = partsInOrder(measured.flatMap(({ measurements }) => measurements.flatMap(partNames)));
  return {
    heading: 'CPU time',
    about:
      'CPU time of all processes that an answer keeps busy, kernel included. What stands after the plus sign is taken later, on the way to ClickHouse: by the pipeline and by ClickHouse itself; the ratio is without it. The rest is that of other threads and children. Shorter bars are better.',
    head: ['Medians, µs each', ...parts, 'All processes', 'without rest'],
    rows: measurementRows(measured, ({ cpu }) => {
      const whole = computeSum(Object.values(cpu).map(({ median }) => median));
      const texts = parts.map((part) => (cpu[part] ? shown(cpu[part].median) : '–'));
      return [[...texts, shown(whole), shown(whole - (cpu.rest?.median ?? 0))]];
    }),
    charts: () => [...contests(measured).map(targetsChart), ...scenariosCharts(measured)],
  };
}

const partNames = ({ cpu }: Measurement): string[] => Object.keys(cpu);

const targetsChart = (scenario: ScenarioResult): string =>
  stackChart(
    `${scenario.name}: CPU per ${scenario.unit}, by target`,
    scenario.unit,
    scenario.measurements.map((measurement) => {
      const ratio = againstBaseline(scenario, measurement).cpu;
      const suffix = ratio === null ? '' : `, ${shown(ratio.median)} × echo`;
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
      value: `${totalText(measurement)} µs${suffix}`,
      parts: stacked(measurement),
    }),
  );
  const names = partsInOrder(stacks.flatMap(({ measurement }) => partNames(measurement)));
  return barFigure({
    title,
    x: fromZero(rows, `µs of CPU per ${unit}`),
    colors: Object.fromEntries(names.map((name) => [name, partColor(name)])),
    legend: true,
    rows,
  });
}

/** Before and after the response. */
const totalText = (measurement: Measurement): string =>
  [acceptingCpu(measurement), laterCpu(measurement)]
    .flatMap((sum) => (sum === null ? [] : [shown(sum.median)]))
    .join(' + ');

function stacked({ cpu }: Measurement): BarRow['parts'] {
  let to = 0;
  return partsInOrder(Object.keys(cpu)).map((part) => {
    const { median } = cpu[part] as Spread;
    const from = to;
    to += median;
    return { from, to, series: part, note: `${part} ${shown(median)} µs` };
  });
}
