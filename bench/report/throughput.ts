import type { BenchResults, Measurement, ScenarioResult, Spread } from '../results.js';
import { barFigure, fromZero, spreadBar } from './bars.js';
import { targetColors } from './style.js';
import {
  acceptingCpu,
  againstBaseline,
  contests,
  laterCpu,
  measurementRows,
  only,
  type Section,
  shown,
  spreadText,
} from './view.js';

export const throughputSection = ({ scenarios }: BenchResults): Section => ({
  heading: 'Throughput',
  about:
    'All connections busy (closed loop): how much a target does in a second when it never waits. Longer bars are better. The thin lines span all rounds.',
  head: ['Scenario, target', 'Unit', 'Per second', '× echo', 'CPU µs each', '× echo', 'CPU µs later'],
  rows: measurementRows(scenarios, costRows),
  charts: () => contests(only(scenarios, ({ throughput }) => throughput !== null)).map(throughputChart),
});

const orDash = (spread: Spread | null): string => (spread === null ? '–' : spreadText(spread));
const medianOrDash = (spread: Spread | null): string => (spread === null ? '–' : shown(spread.median));

function costRows(measurement: Measurement, scenario: ScenarioResult): string[][] {
  const { throughput, cpu } = measurement;
  if (throughput === null && Object.keys(cpu).length === 0) return [];
  const ratios = againstBaseline(scenario, measurement);
  const perSecond = [orDash(throughput), medianOrDash(ratios.throughput)];
  const micros = [orDash(acceptingCpu(measurement)), medianOrDash(ratios.cpu), orDash(laterCpu(measurement))];
  return [[scenario.unit, ...perSecond, ...micros]];
}

function throughputChart({ name, unit, measurements }: ScenarioResult): string {
  const bars = measurements.map(({ target, throughput }) => {
    const spread = throughput as Spread;
    return spreadBar(target, target, spread, `${target}: ${spreadText(spread)} ${unit}s a second`);
  });
  return barFigure({
    title: `${name}: ${unit}s a second`,
    x: fromZero(bars, `${unit}s a second`),
    colors: targetColors(measurements.map(({ target }) => target)),
    rows: bars,
  });
}
