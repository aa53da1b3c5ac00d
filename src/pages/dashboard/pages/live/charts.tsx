import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import type { LiveHistory } from '../../../../client/types.js';
import { computeSum } from '../../../../lists.js';
import { formatClock, formatCompact } from '../../base/format.js';
import { Chart, type ChartProps } from '../../parts/chart.jsx';
import type { Column } from '../../parts/table.jsx';

/** Live figures have the same fields. */
export type ChartFigures = LiveHistory['points'][number];

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
  readonly value: (figures: ChartFigures) => number | null;
}

const timeColumn: Column<ChartFigures> = { title: 'Time', value: ({ at }) => formatClock(at) };

interface ChartSpan {
  readonly windowMs: number;
  /** Between two points. Gaps mean a stopped service, or a paused, hidden or disconnected page. */
  readonly stepMs: number;
}

/** Live figures may arrive late. */
const jitterMs = 2000;
/** Fewer points leave the left of the chart empty. */
const minAxisSteps = 60;

function createLinePlot(
  lines: readonly ChartLine[],
  label: string,
  { windowMs, stepMs }: ChartSpan,
): (figures: readonly ChartFigures[]) => Plot.PlotOptions {
  return (figures) => {
    const points = figures.flatMap((one, i) => buildPoints(one, figures[i - 1], lines, stepMs));
    const [begin, end] = [figures.at(0), figures.at(-1)].map((one) => Date.parse(one?.at ?? '')) as [
      number,
      number,
    ];
    const start = Math.max(end - windowMs, Math.min(begin, end - minAxisSteps * stepMs));
    return {
      x: {
        type: 'utc',
        domain: [new Date(start), new Date(end)],
        label: null,
        ticks: 4,
        // The axis is in UTC, because local time repeats an hour when clocks go back.
        tickFormat: (at: Date) => formatClock(at.toISOString()).slice(0, end - start < 180_000 ? 8 : 5),
      },
      y: {
        label,
        domain: [0, Math.max(0, ...points.map(({ value }) => value ?? 0)) || 1],
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
  figures: ChartFigures,
  before: ChartFigures | undefined,
  lines: readonly ChartLine[],
  stepMs: number,
): SeriesPoint[] {
  const now = Date.parse(figures.at);
  const at = (ms: number, isKnown: boolean): SeriesPoint[] =>
    lines.map(({ name, value }) => ({
      ...{ series: name, at: new Date(ms), value: isKnown ? value(figures) : null },
    }));
  const isGap = before !== undefined && now - Date.parse(before.at) > 1.5 * stepMs + jitterMs;
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

interface LinesChartProps
  extends Pick<ChartProps<ChartFigures>, 'title' | 'about' | 'rows' | 'empty'>,
    ChartSpan {
  readonly unit: string;
  readonly lines: readonly ChartLine[];
}

const LinesChart = ({ lines, unit, windowMs, stepMs, ...chart }: LinesChartProps) => (
  <Chart
    {...chart}
    series={Object.fromEntries(lines.map(({ name, color }) => [name, color]))}
    plot={useMemo(() => createLinePlot(lines, unit, { windowMs, stepMs }), [lines, unit, windowMs, stepMs])}
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

interface LiveChartsProps extends ChartSpan {
  readonly figures: readonly ChartFigures[];
  readonly empty?: string;
}

const latencies = [
  createLine('median', 'Median (ms)', 'a', ({ latency_ms }) => latency_ms?.p50 ?? null),
  createLine('p90 (dashed)', 'p90 (ms)', 'c', ({ latency_ms }) => latency_ms?.p90 ?? null),
  createLine('p99 (dotted)', 'p99 (ms)', 'b', ({ latency_ms }) => latency_ms?.p99 ?? null),
];

export const LiveCharts = ({ figures, ...chart }: LiveChartsProps) => (
  <div class="grid thirds" aria-live="off">
    <LinesChart
      {...chart}
      title="Answers and requests per second"
      about="A batch request contains up to 1,000 answers."
      unit="per second"
      lines={rates}
      rows={figures}
    />
    <LinesChart
      {...chart}
      title="Latency of requests with answers"
      about="Time from the request header to the response. A gap in a line means no answers."
      unit="milliseconds"
      lines={latencies}
      rows={figures}
    />
    <ErrorChart figures={figures} {...chart} />
  </div>
);

const errorColors = ['b', 'a', 'c', 'd', 'e'];

/** A line per status. Beyond five statuses, the rarest share a line. */
function buildStatusLines(figures: readonly ChartFigures[]): ChartLine[] {
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

function ErrorChart({ figures, ...chart }: LiveChartsProps) {
  const lines = buildStatusLines(figures);
  const soleStatus = lines.length === 1 ? ` Status of all errors: ${lines[0]?.name}.` : '';
  return (
    <LinesChart
      {...chart}
      title="Errors per second, by status"
      about={`4xx: rejected requests. 5xx: failed requests, for example because a server is unavailable.${soleStatus}`}
      unit="per second"
      lines={lines}
      rows={lines.length === 0 ? [] : figures}
      empty={(figures.length === 0 && chart.empty) || 'No errors in this period.'}
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
