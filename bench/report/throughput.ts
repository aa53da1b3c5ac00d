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
    'All connections busy (closed loop): how much a target does in a second when it never waits. Longer bars are better. The thin lines span all rounds.',
  head: ['Scenario, target', 'Unit', 'Per second', '× echo', 'CPU µs each', '× echo', 'CPU µs later'],
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
    return createSpreadBar(target, target, spread, `${target}: ${formatSpread(spread)} ${unit}s a second`);
  });
  return barFigure({
    title: `${name}: ${unit}s a second`,
    x: createZeroAxis(bars, `${unit}s a second`),
    colors: targetColors(measurements.map(({ target }) => target)),
    rows: bars,
  });
}
