/** Charts of horizontal bars: each row has its name and value above it, so that the bars have the whole width. */
import type { ChartAxis } from '../../src/lab/report/chart.js';
import { tag, textTag } from '../../src/lab/report/markup.js';
import { type Scale, scaleOf } from '../../src/lab/report/scale.js';

/** A stretch of a bar. */
export interface BarPart {
  readonly from: number;
  readonly to: number;
  /** Class of its colour, see style.ts. */
  readonly fill: string;
  /** Shown when the pointer rests on it. */
  readonly note: string;
}

export interface BarRow {
  readonly name: string;
  /** At the row's end. */
  readonly told: string;
  readonly parts: readonly BarPart[];
  /** Ends of a line over the bar: how sure its end is. */
  readonly range?: { readonly low: number; readonly high: number };
}

export interface BarChart {
  readonly title: string;
  /** What it shows, for those who do not see it. */
  readonly about: string;
  readonly axis: ChartAxis;
  readonly rows: readonly BarRow[];
  /** A line through all rows. */
  readonly level?: number;
  /** What the colours mean. */
  readonly legend?: readonly { readonly name: string; readonly fill: string }[];
}

/** Ends of an axis that begins at 0. */
export const fromZero = (values: readonly number[]): { low: number; high: number } => ({
  low: 0,
  high: Math.max(...values),
});

const width = 520;
const margin = { side: 10, top: 6, bottom: 46 } as const;
const row = { height: 46, text: 15, bar: 22, thick: 14 } as const;

/** A figure with title, legend and drawing. */
export function barFigure(chart: BarChart): string {
  const foot = margin.top + chart.rows.length * row.height;
  const scale = scaleOf(chart.axis, margin.side, width - margin.side);
  const drawing = tag(
    'svg',
    { viewBox: `0 0 ${width} ${foot + margin.bottom}`, role: 'img', 'aria-label': chart.title },
    textTag('desc', {}, chart.about),
    ...axisOf(chart, scale, foot),
    levelOf(chart, scale, foot),
    ...chart.rows.map((one, i) => rowOf(one, scale, margin.top + i * row.height)),
  );
  return tag('figure', {}, textTag('figcaption', {}, chart.title), legendOf(chart), drawing);
}

function axisOf({ axis }: BarChart, scale: Scale, foot: number): string[] {
  const marks = scale.ticks.flatMap((tick) => [
    line('grid', scale.at(tick), margin.top, foot + 4),
    textTag(
      'text',
      { class: `tick ${anchorOf(scale.at(tick))}`, x: scale.at(tick), y: foot + 18 },
      axis.format(tick),
    ),
  ]);
  return [...marks, textTag('text', { class: 'name middle', x: width / 2, y: foot + 39 }, axis.label)];
}

/** Labels at the edges stay inside the drawing. */
const anchorOf = (x: number): string => (x < 30 ? 'start' : x > width - 30 ? 'end' : 'middle');

const line = (name: string, x: number, y1: number, y2: number): string =>
  tag('line', { class: name, x1: x, x2: x, y1, y2 });

function rowOf({ name, told, parts, range }: BarRow, scale: Scale, top: number): string {
  const within = (value: number): number => scale.at(Math.min(scale.high, Math.max(scale.low, value)));
  const y = top + row.bar;
  const bars = parts.map(({ from, to, fill, note }) => {
    const [start, end] = [Math.min(within(from), within(to)), Math.max(within(from), within(to))];
    const place = { x: start, y, width: Math.max(1, end - start), height: row.thick };
    return tag('rect', { class: `part ${fill}`, ...place }, textTag('title', {}, note));
  });
  return tag(
    'g',
    {},
    textTag('text', { class: 'name', x: margin.side, y: top + row.text }, name),
    textTag('text', { class: 'told end', x: width - margin.side, y: top + row.text }, told),
    ...bars,
    range === undefined ? '' : whisker(within(range.low), within(range.high), y + row.thick / 2),
  );
}

const whisker = (from: number, to: number, y: number): string =>
  tag('path', { class: 'whisker', d: `M${round(from)} ${y - 4}v8m0 -4H${round(to)}m0 -4v8` });

const round = (value: number): number => Number(value.toFixed(2));

const levelOf = ({ level }: BarChart, scale: Scale, foot: number): string =>
  level === undefined ? '' : line('level', scale.at(level), margin.top, foot + 4);

function legendOf({ legend = [] }: BarChart): string {
  const entries = legend.map(({ name, fill }) => {
    const sample = tag(
      'svg',
      { class: 'sample', viewBox: '0 0 26 10', 'aria-hidden': 'true' },
      tag('rect', { class: `part ${fill}`, x: 6, y: 0, width: 14, height: 10 }),
    );
    return tag('li', {}, sample, textTag('span', {}, name));
  });
  return entries.length === 0 ? '' : tag('ul', { class: 'legend' }, ...entries);
}
