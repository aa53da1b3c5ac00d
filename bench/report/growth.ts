import { distinct } from '../../src/lists.js';
import type { BenchResults, Measurement, ScenarioResult, Spread } from '../results/results.js';
import { type BarRow, barFigure, createSpreadBar, createZeroAxis } from './bars.js';
import { formatFigure, formatSpread, type Section, sumAcceptingCpu } from './section.js';
import { targetColors } from './style.js';

export const growthSection = ({ scenarios }: BenchResults): Section => ({
  heading: 'Growth',
  about:
    'The same load with more learners, cores, processes or answers per request. CPU time until the response, without the pipeline. Thin lines show the range of all rounds; the tables above contain all values.',
  head: [],
  rows: [],
  charts: () => {
    const labels = distinct(scenarios.flatMap(({ axis }) => axis?.label ?? []));
    return labels.flatMap((label) => buildCharts(scenarios.filter(({ axis }) => axis?.label === label)));
  },
});

function buildCharts(places: readonly ScenarioResult[]): string[] {
  const [first] = places;
  if (first === undefined || places.length < 2) return [];
  const { unit, axis } = first;
  return [
    ...growthChart(`CPU per ${unit} by ${axis?.label}`, `µs of CPU per ${unit}`, places, sumAcceptingCpu),
    ...growthChart(
      `${unit}s per second by ${axis?.label}`,
      `${unit}s per second`,
      places,
      ({ throughput }) => throughput,
    ),
  ];
}

function growthChart(
  title: string,
  unit: string,
  places: readonly ScenarioResult[],
  of: (measurement: Measurement) => Spread | null,
): string[] {
  const rows = places.flatMap(({ axis, measurements }) =>
    measurements.flatMap((measurement): BarRow[] => {
      const { target } = measurement;
      const value = of(measurement);
      const name = `${axis?.label}: ${formatFigure(axis?.value ?? 0)}, ${target}`;
      return value === null ? [] : [createSpreadBar(name, target, value, `${name}: ${formatSpread(value)}`)];
    }),
  );
  if (rows.length === 0) return [];
  const targets = places.flatMap(({ measurements }) => measurements.map(({ target }) => target));
  return [barFigure({ title, x: createZeroAxis(rows, unit), colors: targetColors(targets), rows })];
}
