import { writeFileSync } from 'node:fs';
import * as Plot from '@observablehq/plot';
import { chartFigure } from '../../src/lab/report/chart.js';
import { formatCompact, formatTable } from '../../src/lab/report/format.js';
import { levelMark } from '../../src/lab/report/marks.js';
import { chartGrid, htmlPage, htmlTable, section, tag, textTag } from '../../src/lab/report/page.js';
import { formatFigure } from '../report/section.js';
import { benchStyle } from '../report/style.js';
import type { LoadSettings } from './options.js';
import type { DeploymentResults } from './results.js';
import type { Verification } from './verify.js';

const operationHead = [
  'Operation',
  'Requests',
  'Errors',
  'Per second',
  'p50, ms',
  'p90',
  'p99',
  'p99.9',
  'Maximum',
];

const operationRows = ({ operations }: DeploymentResults): string[][] =>
  Object.entries(operations).map(
    ([name, { requests, errors, rate, p50_ms, p90_ms, p99_ms, p999_ms, max_ms }]) => [
      name,
      ...[requests, errors, rate, p50_ms, p90_ms, p99_ms, p999_ms, max_ms].map(formatFigure),
    ],
  );

const stepHead = ['Offered per second', 'Completed', 'p50, ms', 'p99', 'Errors, %', 'Objectives'];

const stepRows = ({ capacity_steps }: DeploymentResults): string[][] =>
  capacity_steps.map(({ offered, summary: { rate, p50_ms, p99_ms, errors, requests }, isMet }) => [
    ...[offered, rate, p50_ms, p99_ms, (100 * errors) / Math.max(1, requests)].map(formatFigure),
    isMet ? 'met' : 'missed',
  ]);

/** In sentences. */
function describeOutcome(results: DeploymentResults): string[] {
  const { capacity, settings, verified, cleaned_learners, operations, warnings, failures } = results;
  const errors = Object.entries(operations).flatMap(([name, { error_counts }]) =>
    Object.entries(error_counts).map(([reason, count]) => `${name}: ${formatFigure(count)} times ${reason}`),
  );
  return [
    ...(settings.slo === null ? [] : [describeCapacity(capacity)]),
    ...(verified === null ? [] : [describeVerification(verified)]),
    ...(cleaned_learners === null ? [] : [`Erased ${formatFigure(cleaned_learners)} learners.`]),
    ...errors.map((text) => `Errors: ${text}.`),
    ...warnings.map((text) => `Warning: ${text}.`),
    ...failures.map((text) => `FAILED: ${text}.`),
  ];
}

function describeCapacity(capacity: DeploymentResults['capacity']): string {
  if (capacity === null) return 'Capacity: no rate met the objectives.';
  const [rate, p99] = [capacity.rate, capacity.p99_ms].map(formatFigure);
  return `Capacity: ${rate} requests per second met the objectives three times in a row (p99 up to ${p99} ms).`;
}

export function describeVerification(verified: Verification): string {
  const { uncertain, rows } = verified;
  const [sent, found, different] = [verified.acknowledged, verified.found, verified.differences].map(
    formatFigure,
  );
  const doubt = uncertain === 0 ? '' : `, ${formatFigure(uncertain)} without a clear response`;
  const duplicates = formatFigure(verified.duplicates ?? 0);
  const stored = rows === null ? '' : `; ClickHouse has ${formatFigure(rows)} rows, ${duplicates} duplicates`;
  return `Verified: ${sent} answers acknowledged${doubt}, ${found} found, ${different} learners differ${stored}.`;
}

export const formatDeployment = (results: DeploymentResults): string =>
  [
    `Load test of ${results.url}, run ${results.run}`,
    formatTable([operationHead, ...operationRows(results)]),
    ...(results.capacity_steps.length === 0 ? [] : [formatTable([stepHead, ...stepRows(results)])]),
    describeOutcome(results).join('\n'),
  ].join('\n\n');

export function writeDeploymentReport(results: DeploymentResults, file: string): void {
  const { run, started_at: started, settings, capacity_steps } = results;
  const facts = Object.entries({ run, started, ...settings }).flatMap(([name, value]) => {
    const text = formatSetting(value);
    return text === '' ? [] : [textTag('dt', {}, name.replaceAll('_', ' ')), textTag('dd', {}, text)];
  });
  const outcome = tag('ul', {}, ...describeOutcome(results).map((text) => textTag('li', {}, text)));
  const operations = htmlTable(operationHead, operationRows(results));
  const parts = [
    tag('dl', { class: 'run' }, ...facts),
    section('Result', about, outcome, chartGrid(percentileChart(results)), operations),
    capacity_steps.length === 0 ? '' : searchSection(results),
  ];
  writeFileSync(file, htmlPage(`Load test of ${results.url}`, parts, benchStyle));
}

function searchSection(results: DeploymentResults): string {
  const content = [chartGrid([capacityChart(results)]), htmlTable(stepHead, stepRows(results))];
  return section('Search for the capacity', searchAbout, ...content);
}

const formatSetting = (value: LoadSettings[keyof LoadSettings] | string): string =>
  Array.isArray(value)
    ? value.map((one) => (typeof one === 'string' ? one : one.text)).join(', ')
    : `${value ?? ''}`;

const about =
  'Percentiles of successful requests, in milliseconds. With a rate, latency counts from the scheduled time of a request, so it includes the time in which the request waits for a connection.';
const searchAbout =
  'Steps in the order of measurement. The vertical line is the capacity, the horizontal one the objective. Hollow dots missed the objectives.';

/** One of `oneIn` requests takes longer. */
const percentiles = [
  { key: 'p50_ms', name: 'p50', oneIn: 2 },
  { key: 'p90_ms', name: 'p90', oneIn: 10 },
  { key: 'p99_ms', name: 'p99', oneIn: 100 },
  { key: 'p999_ms', name: 'p99.9', oneIn: 1000 },
] as const;

const colors = ['a', 'b', 'c', 'd', 'e'];
const timeAxis = {
  type: 'log',
  nice: true,
  grid: true,
  label: 'milliseconds',
  tickFormat: formatCompact,
  ticks: 5,
} as const;

/** Of scenarios; their calls are in the table. */
function percentileChart({ operations, settings }: DeploymentResults): string[] {
  const shown = Object.entries(operations).filter(
    ([name, { p50_ms }]) => settings.scenarios.some((one) => one === name) && p50_ms > 0,
  );
  if (shown.length === 0) return [];
  const chart = chartFigure({
    title: 'Latency by scenario',
    about: shown
      .map(
        ([name, { p50_ms, p99_ms }]) =>
          `${name}: p50 ${formatFigure(p50_ms)} ms, p99 ${formatFigure(p99_ms)} ms`,
      )
      .join('; '),
    x: {
      ...{ type: 'log', domain: [2, 1000], label: 'percentile' },
      ticks: percentiles.map(({ oneIn }) => oneIn),
      tickFormat: (oneIn: number) => percentiles.find((one) => one.oneIn === oneIn)?.name ?? '',
    },
    y: timeAxis,
    series: Object.fromEntries(shown.map(([name], i) => [name, colors[i % colors.length] as string])),
    points: shown.flatMap(([series, summary]) =>
      percentiles.map(({ key, name, oneIn }) => ({
        series,
        x: oneIn,
        y: summary[key],
        note: `${name} ${formatFigure(summary[key])} ms`,
      })),
    ),
  });
  return [chart];
}

function capacityChart({ capacity, capacity_steps, settings }: DeploymentResults): string {
  const limits = (settings.slo ?? []).flatMap(({ metric, limit }) => (metric === 'p99' ? [limit] : []));
  return chartFigure({
    title: 'Latency by offered rate',
    about: capacity_steps
      .map(({ offered, summary }) => `${formatFigure(offered)}/s: p99 ${formatFigure(summary.p99_ms)} ms`)
      .join('; '),
    x: { label: 'offered requests per second', tickFormat: formatCompact },
    y: timeAxis,
    series: { p50: 'c', p99: 'a' },
    marks: [
      levelMark(limits),
      ...(capacity === null ? [] : [Plot.ruleX([capacity.rate], { stroke: 'var(--text)' })]),
    ],
    points: [...capacity_steps]
      .sort((a, b) => a.offered - b.offered)
      .flatMap(({ offered, summary, isMet }) =>
        (['p50', 'p99'] as const).map((series) => ({
          ...{ series, x: offered, y: summary[`${series}_ms`], isFew: !isMet },
          note: `${formatFigure(summary[`${series}_ms`])} ms at ${formatFigure(offered)}/s`,
        })),
      )
      .filter(({ y }) => y > 0),
  });
}
