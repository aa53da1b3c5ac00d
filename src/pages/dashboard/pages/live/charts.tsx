import * as Plot from '@observablehq/plot';
import type { LiveFigures } from '../../../../client/types.js';
import type { Series } from '../../../../lab/report/marks.js';
import { sumOf } from '../../../../lists.js';
import { compact } from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import type { Column } from '../../parts/table.jsx';

/** One value of one series at a time; null: not known, where its line breaks. */
interface Point {
  readonly series: string;
  readonly at: Date;
  readonly value: number | null;
}

type Values = (figures: LiveFigures) => Readonly<Record<string, number | null>>;

const time = (at: string): string => at.slice(11, 19);
const timeColumn: Column<LiveFigures> = { title: 'Time (UTC)', value: ({ at }) => time(at) };

const windowMs = 5 * 60_000;
/** Of the axis, until figures of five minutes are there. */
const leastMs = 60_000;
/** Longer apart: nobody looked meanwhile. */
const gapMs = 3_500;

/** Values as lines over the last five minutes; nothing is drawn between figures that are far apart. */
function lines(values: Values, label: string): (figures: readonly LiveFigures[]) => Plot.PlotOptions {
  return (figures) => {
    const points = figures.flatMap((one, i) => pointsOf(one, figures[i - 1], values));
    const [begin, end] = [figures.at(0), figures.at(-1)].map((one) => Date.parse(one?.at ?? '')) as [
      number,
      number,
    ];
    const from = Math.max(end - windowMs, Math.min(begin, end - leastMs));
    return {
      x: {
        type: 'utc',
        domain: [new Date(from), new Date(end)],
        label: null,
        ticks: 4,
        tickFormat: end - from < 3 * leastMs ? '%H:%M:%S' : '%H:%M',
      },
      y: {
        label,
        domain: [0, Math.max(1, ...points.map(({ value }) => value ?? 0))],
        grid: true,
        nice: true,
        ticks: 5,
        tickFormat: compact,
      },
      marginTop: 26,
      marks: [
        Plot.ruleY([0]),
        ...[...new Set(points.map(({ series }) => series))].map((name, i) =>
          Plot.lineY(
            points.filter(({ series }) => series === name),
            {
              x: 'at',
              y: 'value',
              z: null,
              stroke: 'series',
              strokeWidth: 1.8,
              strokeDasharray: dashes[i]?.pattern ?? 'none',
            },
          ),
        ),
        Plot.dot(points, Plot.selectLast({ x: 'at', y: 'value', z: 'series', fill: 'series', r: 3 })),
      ],
    };
  };
}

function pointsOf(figures: LiveFigures, before: LiveFigures | undefined, values: Values): Point[] {
  const now = Date.parse(figures.at);
  const here = Object.entries(values(figures));
  const at = (ms: number, isKnown: boolean): Point[] =>
    here.map(([series, value]) => ({ series, at: new Date(ms), value: isKnown ? value : null }));
  const isGap = before !== undefined && now - Date.parse(before.at) > gapMs;
  return isGap ? [...at(now - 1, false), ...at(now, true)] : at(now, true);
}

/** Lines differ by more than their colour; the legend says by what. */
const dashes = [
  { pattern: 'none', name: '' },
  { pattern: '7 3', name: ' (dashes)' },
  { pattern: '2 3', name: ' (dots)' },
  { pattern: '9 3 2 3', name: ' (dashes and dots)' },
  { pattern: '1 6', name: ' (few dots)' },
] as const;

const rateSeries: Series = { 'answers counted': 'a', 'requests of any kind (dashes)': 'd' };
const ratePlot = lines(
  (figures) => ({
    'answers counted': figures.answers_per_second,
    'requests of any kind (dashes)': figures.requests_per_second,
  }),
  'a second',
);
const rateColumns: Column<LiveFigures>[] = [
  timeColumn,
  { title: 'Answers a second', value: (figures) => figures.answers_per_second },
  { title: 'Requests a second', value: (figures) => figures.requests_per_second },
];

export const RateChart = ({ figures }: { figures: readonly LiveFigures[] }) => (
  <Chart
    title="Answers and requests a second"
    about="A request may bring up to 1,000 answers, or none."
    series={rateSeries}
    plot={ratePlot}
    rows={figures}
    columns={rateColumns}
  />
);

const latencySeries: Series = { 'half within': 'a', '90 % within (dashes)': 'c', '99 % within (dots)': 'b' };
const latencyPlot = lines(
  ({ latency_ms }) => ({
    'half within': latency_ms?.p50 ?? null,
    '90 % within (dashes)': latency_ms?.p90 ?? null,
    '99 % within (dots)': latency_ms?.p99 ?? null,
  }),
  'milliseconds',
);
const latencyColumns: Column<LiveFigures>[] = [
  timeColumn,
  { title: 'Half within (ms)', value: ({ latency_ms }) => latency_ms?.p50 ?? null },
  { title: '90 % within (ms)', value: ({ latency_ms }) => latency_ms?.p90 ?? null },
  { title: '99 % within (ms)', value: ({ latency_ms }) => latency_ms?.p99 ?? null },
];

export const LatencyChart = ({ figures }: { figures: readonly LiveFigures[] }) => (
  <Chart
    title="How long an answer takes"
    about="From the head of a request that brings answers to its reply, over the last ten seconds each. A line that breaks: no answers."
    series={latencySeries}
    plot={latencyPlot}
    rows={figures}
    columns={latencyColumns}
  />
);

const errorColors = ['b', 'a', 'c', 'd', 'e'];

interface StatusLine {
  readonly label: string;
  readonly statuses: readonly string[];
}

/** Statuses that were seen, in their order: each a line, and the rarest of more than five one together. */
function statusLines(figures: readonly LiveFigures[]): readonly StatusLine[] {
  const totals = new Map<string, number>();
  for (const { errors } of figures)
    for (const [status, count] of Object.entries(errors ?? {}))
      totals.set(status, (totals.get(status) ?? 0) + count);
  const byCount = [...totals].sort((a, b) => b[1] - a[1]).map(([status]) => status);
  const own = byCount.length > dashes.length ? byCount.slice(0, dashes.length - 1) : byCount;
  const groups = own.sort().map((status) => ({ label: labelOf(status), statuses: [status] }));
  const others = byCount.slice(own.length);
  const all = others.length === 0 ? groups : [...groups, { label: 'others', statuses: others }];
  return all.map(({ label, statuses }, i) => ({ label: `${label}${dashes[i]?.name ?? ''}`, statuses }));
}

/** Errors a second on one line; null: not known yet. */
const errorsOn = ({ statuses }: StatusLine, { errors }: LiveFigures): number | null =>
  errors && sumOf(statuses.map((status) => errors[status] ?? 0));

export function ErrorChart({ figures }: { figures: readonly LiveFigures[] }) {
  const shown = statusLines(figures);
  const only = shown.length === 1 ? ` All are ${shown[0]?.label}.` : '';
  return (
    <Chart
      title="Errors a second, by status"
      about={`4xx: the caller's; 5xx: the service's, or a server behind it is away.${only}`}
      series={Object.fromEntries(shown.map(({ label }, i) => [label, errorColors[i] ?? 'a']))}
      plot={lines(
        (one) => Object.fromEntries(shown.map((line) => [line.label, errorsOn(line, one)])),
        'a second',
      )}
      rows={shown.length === 0 ? [] : figures}
      columns={[
        timeColumn,
        ...shown.map((line) => ({ title: line.label, value: (one: LiveFigures) => errorsOn(line, one) })),
      ]}
      empty="No request failed in the last five minutes."
    />
  );
}

const meanings: Readonly<Record<string, string>> = {
  400: 'invalid',
  401: 'unknown key',
  403: 'not allowed',
  404: 'not found',
  409: 'conflict',
  412: 'changed meanwhile',
  413: 'too large',
  422: 'limit exceeded',
  429: 'quota used up',
  500: 'defect',
  503: 'not available',
};

const labelOf = (status: string): string =>
  meanings[status] === undefined ? status : `${status} ${meanings[status]}`;
