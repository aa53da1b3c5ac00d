import { writeFileSync } from 'node:fs';
import { formatTable } from '../../src/lab/report/format.js';
import { htmlPage, htmlTable, section, tag, textTag } from '../../src/lab/report/page.js';
import { latencySection } from '../report/latency.js';
import { renderSection } from '../report/page.js';
import { formatFigure } from '../report/section.js';
import { benchStyle } from '../report/style.js';
import type { Latency, ScenarioResult } from '../results/results.js';
import type { CapacityStep, DeploymentResults, OperationSummary } from './results.js';

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
function describeOutcome({
  capacity,
  capacity_steps,
  settings,
  verified,
  cleaned_learners,
  operations,
  warnings,
  failures,
}: DeploymentResults): string[] {
  const errors = Object.entries(operations).flatMap(([name, { error_counts }]) =>
    Object.entries(error_counts).map(([reason, count]) => `${name}: ${formatFigure(count)} times ${reason}`),
  );
  return [
    ...(capacity === null
      ? []
      : [
          `Capacity: ${formatFigure(capacity.rate)} requests per second met the objectives three times in a row (p99 up to ${formatFigure(capacity.p99_ms)} ms).`,
        ]),
    ...(capacity === null && capacity_steps.length > 0
      ? [`Capacity: no rate met the objectives ${settings.slo ?? ''}.`]
      : []),
    ...(verified === null ? [] : [describeVerification(verified)]),
    ...(cleaned_learners === null ? [] : [`Erased ${formatFigure(cleaned_learners)} learners.`]),
    ...errors.map((text) => `Errors: ${text}.`),
    ...warnings.map((text) => `Warning: ${text}.`),
    ...failures.map((text) => `FAILED: ${text}.`),
  ];
}

function describeVerification({
  acknowledged,
  uncertain,
  found,
  differences,
  rows,
  duplicates,
}: NonNullable<DeploymentResults['verified']>): string {
  const doubt = uncertain === 0 ? '' : `, ${formatFigure(uncertain)} without a clear response`;
  const stored =
    rows === null
      ? ''
      : `; ClickHouse has ${formatFigure(rows)} rows, ${formatFigure(duplicates ?? 0)} of them duplicates`;
  return `Verified: ${formatFigure(acknowledged)} answers acknowledged${doubt}, ${formatFigure(found)} found, ${formatFigure(differences)} learners differ${stored}.`;
}

export const formatDeployment = (results: DeploymentResults): string =>
  [
    `Load test of ${results.url}, run ${results.run}`,
    formatTable([operationHead, ...operationRows(results)]),
    ...(results.capacity_steps.length === 0 ? [] : [formatTable([stepHead, ...stepRows(results)])]),
    describeOutcome(results).join('\n'),
  ].join('\n\n');

export function writeDeploymentReport(results: DeploymentResults, file: string): void {
  const facts = [
    ['Run', `${results.run}, ${results.started_at}`],
    ...Object.entries(results.settings).flatMap(([name, value]) => [[name, `${value}`]]),
  ].flatMap(([name, text]) => [textTag('dt', {}, name as string), textTag('dd', {}, text as string)]);
  const outcome = describeOutcome(results).map((text) => textTag('li', {}, text));
  const steps =
    results.capacity_steps.length === 0
      ? []
      : [
          section(
            'Steps of the search',
            'In the order of measurement.',
            htmlTable(stepHead, stepRows(results)),
          ),
        ];
  const parts = [
    tag('dl', { class: 'run' }, ...facts),
    section('Result', '', tag('ul', {}, ...outcome), htmlTable(operationHead, operationRows(results))),
    renderSection(latencySection({ scenarios: toScenarios(results) })),
    ...steps,
  ];
  writeFileSync(file, htmlPage(`Load test of ${results.url}`, parts, benchStyle));
}

/** For the charts of the benchmark report. */
const toScenarios = ({ operations, capacity_steps }: DeploymentResults): ScenarioResult[] =>
  capacity_steps.length > 0
    ? [
        createScenario(
          'capacity',
          [...capacity_steps].sort((a, b) => a.offered - b.offered).map(toStepLatency),
        ),
      ]
    : Object.entries(operations).map(([name, summary]) =>
        createScenario(name, [toLatency(summary, summary.rate)]),
      );

const toStepLatency = ({ offered, summary }: CapacityStep): Latency => toLatency(summary, offered);

const toLatency = (
  { rate, p50_ms, p90_ms, p99_ms, p999_ms, max_ms }: OperationSummary,
  offered: number,
): Latency => ({
  ...{ offered, achieved: rate, p50: p50_ms, p90: p90_ms, p99: p99_ms, p999: p999_ms, max: max_ms },
});

const createScenario = (name: string, latencies: readonly Latency[]): ScenarioResult => ({
  ...{ name, about: '', axis: null, unit: 'request' },
  measurements: [
    { target: 'skilltrace', throughput: null, cpu: {}, latencies, memory: {}, pipeline: null, ledger: null },
  ],
});
