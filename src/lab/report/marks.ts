/** Marks and axes for reports and the dashboard. */
import * as Plot from '@observablehq/plot';
import { formatNumber } from './format.js';

/** Colours by name, in the order of the legend: a to e, or text (page.ts). */
export type Series = Readonly<Record<string, string>>;

export interface ChartPoint {
  readonly series: string;
  readonly x: number;
  readonly y: number;
  /** Tooltip. */
  readonly note: string;
  /** Interval of y. */
  readonly low?: number;
  readonly high?: number;
  /** Observations, drawn as the area of the dot. */
  readonly weight?: number;
  /** Few observations: the dot is hollow. */
  readonly isFew?: boolean;
}

export interface ChartBar {
  readonly from: number;
  readonly to: number;
  readonly value: number;
  readonly note: string;
}

export const barMark = (bars: readonly ChartBar[]): Plot.Markish =>
  Plot.rect(bars, {
    ...{ x1: 'from', x2: 'to', y1: () => 0, y2: 'value' },
    ...{ fill: 'var(--bar)', title: 'note', inset: 0.5 },
  });

const createDots = (points: readonly ChartPoint[], isFew: boolean, r: string | number): Plot.Markish =>
  Plot.dot(
    points.filter((point) => (point.isFew ?? false) === isFew),
    {
      ...{ x: 'x', y: 'y', r, title: ({ series, note }: ChartPoint) => `${series}: ${note}` },
      ...(isFew ? { fill: 'var(--panel)', stroke: 'series' } : { fill: 'series', stroke: 'var(--panel)' }),
    },
  );

export const createSeriesMarks = (points: readonly ChartPoint[]): Plot.Markish[] => [
  Plot.line(points, { x: 'x', y: 'y', stroke: 'series', strokeWidth: 2 }),
  Plot.ruleX(
    points.filter(({ low }) => low !== undefined),
    { x: 'x', y1: 'low', y2: 'high', stroke: 'series', strokeOpacity: 0.6 },
  ),
  ...[false, true].map((isFew) =>
    createDots(points, isFew, points.some(({ weight }) => weight !== undefined) ? 'weight' : 3),
  ),
];

export const createColorScale = (series: Series): Plot.ScaleOptions => ({
  domain: Object.keys(series),
  range: Object.values(series).map((color) => `var(--${color})`),
  legend: Object.keys(series).length > 1,
});

const dashed = { stroke: 'var(--soft)', strokeDasharray: '3 4' };

export const levelMark = (levels: readonly number[]): Plot.Markish => Plot.ruleY(levels, dashed);

export const diagonalMark: Plot.Markish = Plot.line([0, 1], {
  x: Plot.identity,
  y: Plot.identity,
  ...dashed,
});

/** As many digits as needed, so that no two labels of an axis are equal. */
export const formatShareTick = (share: number): string => `${Number((100 * share).toFixed(2))}%`;
/** Labels only whole numbers, so that no two labels of an axis are equal. */
export const formatCountTick = (count: number): string =>
  Number.isInteger(count) ? formatNumber(count) : '';

export const shareAxis = (label: string, domain: readonly [number, number] = [0, 1]): Plot.ScaleOptions => ({
  ...{ domain, label, grid: true, tickFormat: formatShareTick },
});

/** Labels at 1, 2 and 5 times powers of ten. */
export const logAxis = (label: string, domain: readonly [number, number]): Plot.ScaleOptions => ({
  ...{ type: 'log', domain, label },
  tickFormat: (value: number) => (/^[125]0*$/.test(String(value)) ? formatNumber(value) : ''),
});

/** At least `minWidth` wide, so that noise does not look like a change. */
export function computeDomain(
  values: readonly number[],
  bounds: readonly [low: number, high: number],
  minWidth: number,
): [number, number] {
  const [smallest, greatest] = [Math.min(...values), Math.max(...values)];
  const padding = Math.max(0, minWidth - (greatest - smallest)) / 2;
  const step = minWidth / 4;
  const [low, high] = [Math.floor((smallest - padding) / step), Math.ceil((greatest + padding) / step)];
  return [Math.max(bounds[0], low * step), Math.min(bounds[1], high * step)];
}
