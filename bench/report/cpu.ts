import {
  type BenchResults,
  type Measurement,
  peersScenario,
  type ScenarioResult,
  type Spread,
} from '../results/results.js';
import { type BarRow, barFigure, createZeroAxis } from './bars.js';
import {
  buildMeasurementRows,
  formatFigure,
  formatTarget,
  orDash,
  type Section,
  selectContests,
  sumAcceptingCpu,
  sumLaterCpu,
} from './section.js';
import { partColor, sortParts } from './style.js';

const formatMedian = ({ median }: Spread): string => formatFigure(median);
const partNames = ({ cpu }: Measurement): string[] => Object.keys(cpu);

export function cpuSection({ scenarios }: BenchResults): Section {
  const parts = sortParts(scenarios.flatMap(({ measurements }) => measurements.flatMap(partNames)));
  return {
    heading: 'CPU time',
    about:
      'CPU time by part, including the kernel. In charts, the value after the plus sign is CPU time after the response, of the pipeline and of ClickHouse. “rest” is CPU time of other threads and child processes. Shorter bars are better.',
    head: ['Medians, µs per unit', ...parts],
    rows: buildMeasurementRows(scenarios, ({ cpu }) =>
      Object.keys(cpu).length === 0 ? [] : [parts.map((part) => orDash(cpu[part] ?? null, formatMedian))],
    ),
    charts: () => {
      const others = scenarios.filter(({ name }) => name !== peersScenario);
      return selectContests(others).map(cpuChart);
    },
  };
}

export const cpuChart = ({ name, unit, measurements }: ScenarioResult): string =>
  stackChart(
    `${name}: CPU per ${unit}, by target`,
    unit,
    measurements.map((measurement) => ({ name: formatTarget(measurement), measurement })),
  );

interface StackRow {
  readonly name: string;
  readonly measurement: Measurement;
}

function stackChart(title: string, unit: string, stacks: readonly StackRow[]): string {
  const rows = stacks.map(
    ({ name, measurement }): BarRow => ({
      name,
      value: `${formatTotal(measurement)} µs`,
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
