import type { BenchResults, Measurement, ScenarioResult, Spread } from '../results/results.js';
import { barFigure, createSpreadBar, createZeroAxis } from './bars.js';
import {
  buildMeasurementRows,
  compareWithBaseline,
  filterMeasurements,
  formatFigure,
  formatSpread,
  type Section,
  selectContests,
  sumAcceptingCpu,
  sumLaterCpu,
} from './section.js';
import { targetColors } from './style.js';

export const throughputSection = ({ scenarios }: BenchResults): Section => ({
  heading: 'Throughput',
  about:
    'Closed loop: every connection sends its next request when the response arrives. Longer bars are better. Thin lines show the range of all rounds.',
  head: [
    'Scenario, target',
    'Unit',
    'Per second',
    '× echo',
    'CPU µs per unit',
    '× echo',
    'CPU µs after response',
  ],
  rows: buildMeasurementRows(scenarios, costRows),
  charts: () =>
    selectContests(filterMeasurements(scenarios, ({ throughput }) => throughput !== null)).map(
      throughputChart,
    ),
});

const formatOrDash = (spread: Spread | null): string => (spread === null ? '–' : formatSpread(spread));
const formatMedian = (spread: Spread | null): string => (spread === null ? '–' : formatFigure(spread.median));

function costRows(measurement: Measurement, scenario: ScenarioResult): string[][] {
  const { throughput, cpu } = measurement;
  if (throughput === null && Object.keys(cpu).length === 0) return [];
  const ratios = compareWithBaseline(scenario, measurement);
  const perSecond = [formatOrDash(throughput), formatMedian(ratios.throughput)];
  const micros = [
    formatOrDash(sumAcceptingCpu(measurement)),
    formatMedian(ratios.cpu),
    formatOrDash(sumLaterCpu(measurement)),
  ];
  return [[scenario.unit, ...perSecond, ...micros]];
}

function throughputChart({ name, unit, measurements }: ScenarioResult): string {
  const bars = measurements.map(({ target, throughput }) => {
    const spread = throughput as Spread;
    return createSpreadBar(target, target, spread, `${target}: ${formatSpread(spread)} ${unit}s per second`);
  });
  return barFigure({
    title: `${name}: ${unit}s per second`,
    x: createZeroAxis(bars, `${unit}s per second`),
    colors: targetColors(measurements.map(({ target }) => target)),
    rows: bars,
  });
}
