import { distinct } from '../../src/lists.js';
import type { BenchResults, Measurement, ScenarioResult, Spread } from '../results/results.js';
import { type SpreadBar, spreadChart } from './bars.js';
import { formatFigure, type Section, sumAcceptingCpu } from './section.js';

export const growthSection = ({ scenarios }: BenchResults): Section => ({
  heading: 'Growth',
  about:
    'The same load with more learners, cores, processes or answers per request. CPU time until the response, without the pipeline. Thin lines show the interval of the median; the tables above contain all values.',
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
  const closedThroughput = ({ offered, throughput }: Measurement) => (offered === null ? throughput : null);
  return [
    ...spreadChart(
      `CPU per ${unit} by ${axis?.label}`,
      `µs of CPU per ${unit}`,
      growthBars(places, sumAcceptingCpu),
    ),
    ...spreadChart(
      `${unit}s per second by ${axis?.label}`,
      `${unit}s per second`,
      growthBars(places, closedThroughput),
    ),
  ];
}

const growthBars = (
  places: readonly ScenarioResult[],
  pick: (measurement: Measurement) => Spread | null,
): SpreadBar[] =>
  places.flatMap(({ axis, measurements }) =>
    measurements.flatMap((measurement) => {
      const { target } = measurement;
      const value = pick(measurement);
      const name = `${axis?.label}: ${formatFigure(axis?.value ?? 0)}, ${target}`;
      return value === null ? [] : [{ name, target, value }];
    }),
  );
