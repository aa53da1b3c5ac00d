/** Observable Plot: docs/adr/0008-choose-libraries.md. */
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import { formatCompact } from './format.js';
import {
  barMark,
  type ChartBar,
  type ChartPoint,
  createColorScale,
  createSeriesMarks,
  type Series,
} from './marks.js';
import { tag, textTag } from './page.js';

const { document } = parseHTML('<html><body></body></html>');

export interface Chart extends Plot.PlotOptions {
  readonly title: string;
  /** For screen readers. */
  readonly about?: string;
  readonly x: Plot.ScaleOptions;
  /** Colours and legend of `points`, which are drawn over `marks`. */
  readonly series?: Series;
  readonly points?: readonly ChartPoint[];
  /** Below the plot: answers by ranges of x. */
  readonly counts?: readonly ChartBar[];
}

const layout = { width: 520, height: 330, marginLeft: 56, marginRight: 20, marginTop: 28, marginBottom: 40 };

export function chartFigure({ title, about, series, points, marks = [], counts, ...options }: Chart): string {
  const drawing = renderSvg({
    ...{ ariaLabel: title, ...(about && { ariaDescription: about }) },
    ...(series && { color: createColorScale(series) }),
    ...options,
    marks: [...marks, ...(points ? createSeriesMarks(points) : [])],
  });
  const strip = counts && {
    ...{ ariaLabel: 'answers', height: 76, marginTop: 22, marginBottom: 6 },
    x: { ...options.x, axis: null },
    y: { label: 'answers', ticks: 2, tickFormat: formatCompact, grid: true },
    marks: [barMark(counts)],
  };
  return tag('figure', {}, textTag('figcaption', {}, title), drawing, strip ? renderSvg(strip) : '');
}

function renderSvg(options: Plot.PlotOptions): string {
  const drawing = Plot.plot({ document, ...layout, ...options });
  // With a legend, Plot returns a figure around the drawing.
  const svg = drawing.querySelector('svg[aria-label]') ?? drawing;
  svg.setAttribute('role', 'img');
  return drawing.outerHTML;
}
