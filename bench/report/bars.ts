import * as Plot from '@observablehq/plot';
import { chartFigure } from '../../src/lab/report/chart.js';
import { createColorScale, type Series } from '../../src/lab/report/marks.js';
import type { Spread } from '../results/results.js';
import { formatFigure, formatSpread } from './section.js';
import { targetColor } from './style.js';

export interface BarPart {
  readonly from: number;
  readonly to: number;
  /** In the chart's `colors`. */
  readonly series: string;
  /** Tooltip. */
  readonly note: string;
}

export interface BarRow {
  readonly name: string;
  readonly value: string;
  readonly parts: readonly BarPart[];
  readonly range?: { readonly low: number; readonly high: number };
}

export interface BarChart {
  readonly title: string;
  readonly x: Plot.ScaleOptions;
  readonly rows: readonly BarRow[];
  readonly colors: Series;
  readonly legend?: boolean;
  readonly level?: number;
}

export interface SpreadBar {
  readonly name: string;
  readonly target: string;
  readonly value: Spread;
}

/** @returns no chart without bars */
export function spreadChart(title: string, unit: string, bars: readonly SpreadBar[]): string[] {
  if (bars.length === 0) return [];
  const rows = bars.map(
    ({ name, target, value }): BarRow => ({
      name,
      value: formatFigure(value.median),
      parts: [{ from: 0, to: value.median, series: target, note: `${name}: ${formatSpread(value)} ${unit}` }],
      range: value,
    }),
  );
  const colors = Object.fromEntries(bars.map(({ target }) => [target, targetColor(target)]));
  return [barFigure({ title, x: createZeroAxis(rows, unit), colors, rows })];
}

export const createZeroAxis = (rows: readonly BarRow[], label: string): Plot.ScaleOptions => ({
  domain: [0, Math.max(...rows.map(({ parts, range }) => range?.high ?? parts.at(-1)?.to ?? 0))],
  label,
  tickFormat: '~s',
});

const rowHeight = 46;
const textAbove = { frameAnchor: 'left', textAnchor: 'start', dy: -9, fontSize: 13 } as const;

export function barFigure({ title, x, rows, colors, legend = false, level }: BarChart): string {
  const named = rows.map((row, i) => ({ ...row, y: i, ...row.range }));
  const parts = named.flatMap(({ parts, y }) => parts.map((part) => ({ ...part, y })));
  return chartFigure({
    title,
    about: rows.map(({ name, value }) => `${name}: ${value}`).join('; '),
    height: rows.length * rowHeight + 44,
    ...{ marginLeft: 12, marginRight: 14, marginTop: 4 },
    x: { grid: true, clamp: true, ticks: 5, ...x },
    y: { type: 'band', axis: null, domain: named.map(({ y }) => y), padding: 0 },
    color: { ...createColorScale(colors), legend },
    marks: [
      Plot.barX(parts, {
        x1: 'from',
        x2: 'to',
        y: 'y',
        fill: 'series',
        title: 'note',
        insetTop: 24,
        insetBottom: 8,
      }),
      level === undefined ? null : Plot.ruleX([level], { strokeWidth: 1.5 }),
      Plot.ruleY(
        named.filter(({ range }) => range !== undefined),
        { x1: 'low', x2: 'high', y: 'y', dy: 8, stroke: 'var(--text)', strokeWidth: 1.25 },
      ),
      Plot.text(named, { y: 'y', text: 'name', ...textAbove, fill: 'var(--text)' }),
      Plot.text(named, { y: 'y', text: 'value', ...textAbove, frameAnchor: 'right', textAnchor: 'end' }),
    ],
  });
}
