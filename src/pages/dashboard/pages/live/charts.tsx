import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { LiveFigures } from '../../../../client/types.js';
import { computeSum } from '../../../../lists.js';
import { formatCompact } from '../../base/format.js';
import { Chart, type ChartProps } from '../../parts/chart.jsx';
import type { Column } from '../../parts/table.jsx';

/** The line breaks at null, an unknown value. */
interface SeriesPoint {
  readonly series: string;
  readonly at: Date;
  readonly value: number | null;
}

interface ChartLine {
  readonly name: string;
  readonly column: string;
  readonly color: string;
  readonly value: (figures: LiveFigures) => number | null;
}

const formatTime = (at: string): string => at.slice(11, 19);
const timeColumn: Column<LiveFigures> = { title: 'Time (UTC)', value: ({ at }) => formatTime(at) };

const windowMs = 5 * 60_000;
const minAxisMs = 60_000;
/** Longer intervals mean a paused, hidden or disconnected page. */
const gapMs = 3_500;

function createLinePlot(
  lines: readonly ChartLine[],
  label: string,
): (figures: readonly LiveFigures[]) => Plot.PlotOptions {
  return (figures) => {
    const points = figures.flatMap((one, i) => buildPoints(one, figures[i - 1], lines));
    const [begin, end] = [figures.at(0), figures.at(-1)].map((one) => Date.parse(one?.at ?? '')) as [
      number,
      number,
    ];
    const start = Math.max(end - windowMs, Math.min(begin, end - minAxisMs));
    return {
      x: {
        type: 'utc',
        domain: [new Date(start), new Date(end)],
        label: null,
        ticks: 4,
        tickFormat: end - start < 3 * minAxisMs ? '%H:%M:%S' : '%H:%M',
      },
      y: {
        label,
        domain: [0, Math.max(1, ...points.map(({ value }) => value ?? 0))],
        grid: true,
        nice: true,
        ticks: 5,
        tickFormat: formatCompact,
      },
      marginTop: 26,
      marks: [
        Plot.ruleY([0]),
        ...lines.map(({ name }, i) =>
          Plot.lineY(
            points.filter(({ series }) => series === name),
            {
              x: 'at',
              y: 'value',
              z: null,
              stroke: 'series',
              strokeWidth: 1.8,
              strokeDasharray: dashStyles[i]?.pattern ?? 'none',
            },
          ),
        ),
        Plot.dot(points, Plot.selectLast({ x: 'at', y: 'value', z: 'series', fill: 'series', r: 3 })),
      ],
    };
  };
}

function buildPoints(
  figures: LiveFigures,
  before: LiveFigures | undefined,
  lines: readonly ChartLine[],
): SeriesPoint[] {
  const now = Date.parse(figures.at);
  const at = (ms: number, isKnown: boolean): SeriesPoint[] =>
    lines.map(({ name, value }) => ({
      ...{ series: name, at: new Date(ms), value: isKnown ? value(figures) : null },
    }));
  const isGap = before !== undefined && now - Date.parse(before.at) > gapMs;
  return isGap ? [...at(now - 1, false), ...at(now, true)] : at(now, true);
}

/** Distinguish the lines without colour. */
const dashStyles = [
  { pattern: 'none', name: '' },
  { pattern: '7 3', name: ' (dashed)' },
  { pattern: '2 3', name: ' (dotted)' },
  { pattern: '9 3 2 3', name: ' (dash-dotted)' },
  { pattern: '1 6', name: ' (sparse dots)' },
] as const;

interface LinesChartProps extends Pick<ChartProps<LiveFigures>, 'title' | 'about' | 'rows' | 'empty'> {
  readonly unit: string;
  readonly lines: readonly ChartLine[];
}

const LinesChart = ({ lines, unit, ...chart }: LinesChartProps) => (
  <Chart
    {...chart}
    series={Object.fromEntries(lines.map(({ name, color }) => [name, color]))}
    plot={useMemo(() => createLinePlot(lines, unit), [lines, unit])}
    columns={[timeColumn, ...lines.map(({ column, value }) => ({ title: column, value }))]}
  />
);

const createLine = (name: string, column: string, color: string, value: ChartLine['value']): ChartLine => ({
  ...{ name, column, color, value },
});

const rates = [
  createLine('answers', 'Answers per second', 'a', (figures) => figures.answers_per_second),
  createLine('all requests (dashed)', 'Requests per second', 'd', (figures) => figures.requests_per_second),
];

export const RateChart = ({ figures }: { figures: readonly LiveFigures[] }) => (
  <LinesChart
    title="Answers and requests per second"
    about="A batch request contains up to 1,000 answers."
    unit="per second"
    lines={rates}
    rows={figures}
  />
);

const latencies = [
  createLine('median', 'Median (ms)', 'a', ({ latency_ms }) => latency_ms?.p50 ?? null),
  createLine('p90 (dashed)', 'p90 (ms)', 'c', ({ latency_ms }) => latency_ms?.p90 ?? null),
  createLine('p99 (dotted)', 'p99 (ms)', 'b', ({ latency_ms }) => latency_ms?.p99 ?? null),
];

export const LatencyChart = ({ figures }: { figures: readonly LiveFigures[] }) => (
  <LinesChart
    title="Latency of requests with answers"
    about="Time from the request header to the response, over 10 seconds. A gap in a line means no answers."
    unit="milliseconds"
    lines={latencies}
    rows={figures}
  />
);

const errorColors = ['b', 'a', 'c', 'd', 'e'];

/** A line per status. Beyond five statuses, the rarest share a line. */
function buildStatusLines(figures: readonly LiveFigures[]): ChartLine[] {
  const totals = new Map<string, number>();
  for (const { errors } of figures)
    for (const [status, count] of Object.entries(errors ?? {}))
      totals.set(status, (totals.get(status) ?? 0) + count);
  const byCount = [...totals].sort((a, b) => b[1] - a[1]).map(([status]) => status);
  const frequent = byCount.length > dashStyles.length ? byCount.slice(0, dashStyles.length - 1) : byCount;
  const groups = frequent.sort().map((status) => ({ label: formatStatus(status), statuses: [status] }));
  const others = byCount.slice(frequent.length);
  const all = others.length === 0 ? groups : [...groups, { label: 'others', statuses: others }];
  return all.map(({ label, statuses }, i) => {
    const name = `${label}${dashStyles[i]?.name ?? ''}`;
    return createLine(
      name,
      name,
      errorColors[i] ?? 'a',
      ({ errors }) => errors && computeSum(statuses.map((status) => errors[status] ?? 0)),
    );
  });
}

export function ErrorChart({ figures }: { figures: readonly LiveFigures[] }) {
  const lines = buildStatusLines(figures);
  const soleStatus = lines.length === 1 ? ` Status of all errors: ${lines[0]?.name}.` : '';
  return (
    <LinesChart
      title="Errors per second, by status"
      about={`4xx: rejected requests. 5xx: failed requests, for example because a server is unavailable.${soleStatus}`}
      unit="per second"
      lines={lines}
      rows={lines.length === 0 ? [] : figures}
      empty="No errors in the last 5 minutes."
    />
  );
}

const statusMeanings: Readonly<Record<string, string>> = {
  400: 'invalid',
  401: 'unknown key',
  403: 'missing scope',
  404: 'not found',
  409: 'conflict',
  412: 'precondition failed',
  413: 'too large',
  422: 'unprocessable',
  429: 'quota exceeded',
  500: 'internal error',
  503: 'unavailable',
};

const formatStatus = (status: string): string =>
  statusMeanings[status] === undefined ? status : `${status} ${statusMeanings[status]}`;
