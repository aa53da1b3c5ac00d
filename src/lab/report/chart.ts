/** Charts as SVG: lines and dots over two axes, with an optional strip of bars below that tells how many. */
import { tag, textTag } from './markup.js';
import { compact } from './numbers.js';
import { type Domain, type Scale, scaleOf } from './scale.js';

/** Looks of a series, defined in page.ts: its colour and dashes, fit for light and dark. */
export type SeriesStyle = 'observed' | 'a' | 'b' | 'c' | 'd' | 'e';

export interface ChartPoint {
  readonly x: number;
  readonly y: number;
  /** Shown when the pointer rests on it. */
  readonly note: string;
  /** Radius of the dot in pixels. */
  readonly radius?: number;
  /** Ends of a line through the dot: how sure y is. */
  readonly range?: { readonly low: number; readonly high: number };
}

export interface ChartSeries {
  readonly name: string;
  readonly style: SeriesStyle;
  readonly points: readonly ChartPoint[];
}

export interface ChartAxis extends Domain {
  /** With the unit. */
  readonly label: string;
  readonly format: (value: number) => string;
}

/** A count for a range of x. */
export interface ChartBar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** Shown when the pointer rests on it. */
  readonly note: string;
}

/** A value for a range of x. */
export interface ChartColumn {
  readonly from: number;
  readonly to: number;
  readonly value: number;
  /** Shown when the pointer rests on it. */
  readonly note: string;
}

export interface Chart {
  readonly title: string;
  /** What it shows, for those who do not see it. */
  readonly about?: string;
  readonly x: ChartAxis;
  readonly y: ChartAxis;
  readonly series: readonly ChartSeries[];
  /** A dashed line through (0, 0) and (1, 1). */
  readonly diagonal?: boolean;
  /** Dashed lines across the plot at these values. */
  readonly levels?: readonly number[];
  /** Columns in the plot, from its foot to a value. */
  readonly columns?: readonly ChartColumn[];
  readonly bars?: { readonly label: string; readonly values: readonly ChartBar[] };
  readonly width?: number;
  readonly height?: number;
}

const margin = { left: 68, right: 24, top: 12, bottom: 48 } as const;
const strip = { height: 56, gap: 22 } as const;
const tickLength = 4;

/** Where the parts of a chart are, in pixels. */
interface Frame {
  readonly x: Scale;
  readonly y: Scale;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  /** Bottom of the strip of bars, which is that of the plot where there is none. */
  readonly foot: number;
}

/** A figure with title, legend (where there is more than one series) and drawing. */
export function chartFigure(chart: Chart): string {
  const { width = 520, height = 380 } = chart;
  const frame = frameOf(chart, width, height);
  const parts = [
    ...gridOf(chart, frame),
    ...columnsOf(chart, frame),
    chart.diagonal ? diagonalOf(frame) : '',
    ...levelsOf(chart, frame),
    ...barsOf(chart, frame),
    ...chart.series.map((series) => seriesOf(series, frame)),
  ];
  const drawing = tag(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': chart.title },
    chart.about === undefined ? '' : textTag('desc', {}, chart.about),
    ...parts,
  );
  const legend = chart.series.length > 1 ? legendOf(chart.series) : '';
  return tag('figure', {}, textTag('figcaption', {}, chart.title), legend, drawing);
}

function frameOf({ x, y, bars }: Chart, width: number, height: number): Frame {
  const [left, right, top] = [margin.left, width - margin.right, margin.top];
  const foot = height - margin.bottom;
  const bottom = bars === undefined ? foot : foot - strip.height - strip.gap;
  return { x: scaleOf(x, left, right), y: scaleOf(y, bottom, top), left, right, top, bottom, foot };
}

const line = (name: string, x1: number, y1: number, x2: number, y2: number): string =>
  tag('line', { class: name, x1, y1, x2, y2 });

function gridOf(chart: Chart, { x, y, left, right, top, bottom, foot }: Frame): string[] {
  const middle = (left + right) / 2;
  return [
    ...y.ticks.flatMap((tick) => [
      line('grid', left, y.at(tick), right, y.at(tick)),
      label('tick end', left - 8, y.at(tick) + 4, chart.y.format(tick)),
    ]),
    ...x.ticks.flatMap((tick) => [
      line('grid', x.at(tick), top, x.at(tick), bottom),
      line('axis', x.at(tick), foot, x.at(tick), foot + tickLength),
      label('tick middle', x.at(tick), foot + 18, chart.x.format(tick)),
    ]),
    line('axis', left, foot, right, foot),
    label('name middle', middle, foot + 40, chart.x.label),
    upright(chart.y.label, (top + bottom) / 2),
  ];
}

const label = (name: string, x: number, y: number, text: string): string =>
  textTag('text', { class: name, x, y }, text);

const upright = (text: string, y: number): string =>
  textTag('text', { class: 'name middle', transform: `translate(13 ${Math.round(y)}) rotate(-90)` }, text);

const diagonalOf = ({ x, y }: Frame): string =>
  line('diagonal', x.at(x.low), y.at(x.low), x.at(x.high), y.at(x.high));

const levelsOf = ({ levels = [] }: Chart, { y, left, right }: Frame): string[] =>
  levels.map((level) => line('diagonal', left, y.at(level), right, y.at(level)));

const columnsOf = ({ columns = [] }: Chart, { x, y, bottom }: Frame): string[] =>
  columns.map(({ from, to, value, note }) => {
    const [start, top] = [x.at(from) + 0.75, y.at(value)];
    const place = { x: start, y: top, width: x.at(to) - 0.75 - start, height: bottom - top };
    return tag('rect', { class: 'bar', ...place }, textTag('title', {}, note));
  });

function barsOf({ bars }: Chart, { x, left, right, foot }: Frame): string[] {
  if (bars === undefined) return [];
  const most = Math.max(1, ...bars.values.map(({ count }) => count));
  const heights = scaleOf({ low: 0, high: most }, 0, strip.height);
  const drawn = bars.values
    .filter(({ count }) => count > 0)
    .map(({ from, to, count, note }) => {
      const [start, end] = [x.at(from) + 0.75, x.at(to) - 0.75];
      const height = Math.max(0.75, heights.at(count));
      const place = { x: start, y: foot - height, width: Math.max(0.5, end - start), height };
      return tag('rect', { class: 'bar', ...place }, textTag('title', {}, note));
    });
  return [
    ...drawn,
    line('grid', left, foot - strip.height, right, foot - strip.height),
    label('tick end', left - 8, foot - strip.height + 4, compact(most)),
    label('tick end', left - 8, foot + 4, '0'),
    upright(bars.label, foot - strip.height / 2),
  ];
}

function seriesOf({ points, style, name }: ChartSeries, { x, y }: Frame): string {
  const places = points.map((point) => ({ ...point, left: x.at(point.x), top: y.at(point.y) }));
  const path = places.map(({ left, top }) => `${left.toFixed(2)},${top.toFixed(2)}`).join(' ');
  const dots = places.map(({ left, top, note, radius = 3 }) =>
    tag('circle', { cx: left, cy: top, r: radius }, textTag('title', {}, `${name}: ${note}`)),
  );
  const ranges = places.flatMap(({ left, range }) =>
    range === undefined ? [] : [line('range', left, y.at(range.low), left, y.at(range.high))],
  );
  return tag('g', { class: `series ${style}` }, tag('polyline', { points: path }), ...ranges, ...dots);
}

function legendOf(series: readonly ChartSeries[]): string {
  const entries = series.map(({ name, style }) => {
    const sample = tag(
      'svg',
      { class: 'sample', viewBox: '0 0 26 10', 'aria-hidden': 'true' },
      tag(
        'g',
        { class: `series ${style}` },
        tag('polyline', { points: '1,5 25,5' }),
        tag('circle', { cx: 13, cy: 5, r: 3 }),
      ),
    );
    return tag('li', {}, sample, textTag('span', {}, name));
  });
  return tag('ul', { class: 'legend' }, ...entries);
}
