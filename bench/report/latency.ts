import { chartFigure } from '../../src/lab/report/chart.js';
import { formatCompact } from '../../src/lab/report/format.js';
import type { ChartPoint } from '../../src/lab/report/marks.js';
import type { BenchResults, Latency, Measurement, ScenarioResult } from '../results/results.js';
import {
  buildMeasurementRows,
  filterMeasurements,
  formatFigure,
  formatScenarioTitle,
  type Section,
} from './section.js';
import { targetColor, targetColors } from './style.js';

export const latencySection = ({ scenarios }: BenchResults): Section => ({
  heading: 'Latency',
  about:
    'Open loop: requests are sent at a fixed rate, independent of the responses. Latency counts from the scheduled time, so a stall affects every request that waits behind it. Milliseconds on logarithmic scales.',
  head: [
    ...['Scenario, target', 'Offered/s', 'Completed/s', 'Rejected/s'],
    ...['p50, ms', 'p90', 'p99', 'p99.9', 'Maximum'],
  ],
  rows: buildMeasurementRows(scenarios, ({ latencies }) =>
    latencies.map(({ offered, achieved, refused = 0, p50, p90, p99, p999, max }) =>
      [offered, achieved, refused, p50, p90, p99, p999, max].map(formatFigure),
    ),
  ),
  charts: () => filterMeasurements(scenarios, ({ latencies }) => latencies.length > 0).flatMap(buildCharts),
});

const buildCharts = (scenario: ScenarioResult): string[] =>
  scenario.measurements.some(({ latencies }) => latencies.length > 1)
    ? [percentileChart(scenario), offeredChart(scenario)]
    : [percentileChart(scenario)];

const isRateReached = ({ offered, achieved }: Latency): boolean => achieved >= 0.95 * offered;

/** One of `oneIn` requests takes longer. */
const percentiles = [
  { key: 'p50', name: 'p50', oneIn: 2 },
  { key: 'p90', name: 'p90', oneIn: 10 },
  { key: 'p99', name: 'p99', oneIn: 100 },
  { key: 'p999', name: 'p99.9', oneIn: 1000 },
] as const;

function percentileChart(scenario: ScenarioResult): string {
  const { measurements } = scenario;
  const chosen = measurements.map((measurement) => ({
    ...measurement,
    latency: selectHalfLoad(measurement),
  }));
  const [rate = 0, ...others] = new Set(chosen.map(({ latency }) => latency.offered));
  const same = others.length === 0;
  const nameOf = ({ target, latency }: (typeof chosen)[number]): string =>
    same ? target : `${target}, ${formatFigure(latency.offered)}/s`;
  return chartFigure({
    title: `${formatScenarioTitle(scenario)}: percentiles at ${same ? `${formatFigure(rate)} requests per second` : 'half of saturation'}`,
    about: chosen
      .map(
        ({ target, latency }) =>
          `${target}: p50 ${formatFigure(latency.p50)} ms, p99 ${formatFigure(latency.p99)} ms`,
      )
      .join('; '),
    x: {
      type: 'log',
      domain: [2, 1000],
      label: 'percentile',
      ticks: percentiles.map(({ oneIn }) => oneIn),
      tickFormat: formatPercentile,
    },
    y: timeAxis(chosen.flatMap(({ latency }) => [latency.p50, latency.p999])),
    series: Object.fromEntries(chosen.map((one) => [nameOf(one), targetColor(one.target)])),
    points: chosen.flatMap((one) =>
      percentiles.map(({ key, name, oneIn }) => ({
        series: nameOf(one),
        x: oneIn,
        y: clampTime(one.latency[key]),
        note: `${name} ${formatFigure(one.latency[key])} ms at ${formatFigure(one.latency.offered)} requests per second`,
      })),
    ),
  });
}

function selectHalfLoad({ throughput, latencies }: Measurement): Latency {
  const most = throughput?.median ?? latencies.at(-1)?.offered ?? 0;
  const distance = ({ offered }: Latency): number => Math.abs(offered - most / 2);
  return latencies.reduce((best, one) => (distance(one) < distance(best) ? one : best));
}

const formatPercentile = (oneIn: number): string =>
  percentiles.find((percentile) => percentile.oneIn === oneIn)?.name ?? '';

/** p99 of several targets, or all percentiles of one. */
function offeredChart(scenario: ScenarioResult): string {
  const { measurements } = scenario;
  const [first] = measurements as [Measurement];
  const alone = measurements.length === 1;
  const all = measurements.flatMap(({ latencies }) => latencies);
  return chartFigure({
    title: `${formatScenarioTitle(scenario)}: ${alone ? first.target : 'p99'} by offered load`,
    about: 'Latency by offered requests per second. The table below contains all values.',
    x: {
      domain: [0, Math.max(...all.map(({ offered }) => offered))],
      label: 'offered requests per second',
      tickFormat: formatCompact,
    },
    y: timeAxis(all.flatMap(({ p50, p99, p999 }) => (alone ? [p50, p999] : [p99]))),
    series: alone ? percentileColors : targetColors(measurements.map(({ target }) => target)),
    points: alone
      ? percentiles.flatMap(({ key, name }) => offeredPoints(name, first, key))
      : measurements.flatMap((measurement) => offeredPoints(measurement.target, measurement, 'p99')),
  });
}

const percentileColors = { p50: 'c', p90: 'd', p99: 'a', 'p99.9': 'b' };

const offeredPoints = (
  series: string,
  { latencies }: Measurement,
  key: (typeof percentiles)[number]['key'],
): ChartPoint[] =>
  latencies.map((latency) => ({
    series,
    x: latency.offered,
    y: clampTime(latency[key]),
    note: `${formatFigure(latency[key])} ms at ${formatFigure(latency.offered)} requests per second${isRateReached(latency) ? '' : ` (${formatFigure(latency.achieved)} completed)`}`,
  }));

/** 10 µs: smaller values show only the clock's resolution. */
const minTimeMs = 0.01;
const clampTime = (milliseconds: number): number => Math.max(minTimeMs, milliseconds);

const timeAxis = (milliseconds: readonly number[]) => ({
  type: 'log' as const,
  ...{ nice: true, grid: true, label: 'milliseconds', tickFormat: formatTick },
  domain: [Math.min(...milliseconds.map(clampTime)), Math.max(...milliseconds.map(clampTime))],
});

const formatTick = (value: number): string =>
  /^[0.]*[125]0*$/.test(String(value)) ? formatCompact(value) : '';
