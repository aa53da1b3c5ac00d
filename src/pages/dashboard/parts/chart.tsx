/** An Observable Plot chart, with its data as a table for screen readers. */
import * as Plot from '@observablehq/plot';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { createColorScale, type Series } from '../../../lab/report/marks.js';
import { useWidth } from '../base/width.js';
import { type Column, Table, type TableProps } from './table.jsx';

export interface ChartProps<Row> {
  readonly title: string;
  readonly about?: string;
  /** Colours (a to e of style.css) by name. Several series get a legend. */
  readonly series?: Series;
  /** A new function or new `rows` redraw the chart. */
  readonly plot: (rows: readonly Row[]) => Plot.PlotOptions;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly height?: number;
  readonly legend?: ComponentChildren;
  readonly empty?: string;
  readonly table?: ChartTable<Row>;
}

interface ChartTable<Row> extends Pick<TableProps<Row>, 'name' | 'sortedBy'> {
  readonly summary: string;
  readonly isOpen: boolean;
}

export function Chart<Row>({
  title,
  about,
  series,
  plot,
  rows,
  columns,
  height = 280,
  legend,
  empty,
  table,
}: ChartProps<Row>) {
  const { element, width, setElement } = useWidth();
  const [isTableOpen, setTableOpen] = useState(table?.isOpen ?? false);
  useEffect(() => {
    if (element === null || width === 0) return;
    const color = series && { ...createColorScale(series), legend: false };
    element.replaceChildren(renderPlot({ ...(color && { color }), ...plot(rows), width, height }, title));
  }, [element, width, rows, plot]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      {about !== undefined && <p class="soft">{about}</p>}
      {series !== undefined && Object.keys(series).length > 1 && <Legend series={series} />}
      {rows.length > 0 && legend}
      {rows.length === 0 ? (
        <p class="soft">{empty ?? 'No data yet.'}</p>
      ) : (
        <div class="drawing" ref={setElement} />
      )}
      {rows.length > 0 && (
        <details open={isTableOpen} onToggle={(event) => setTableOpen(event.currentTarget.open)}>
          <summary>{table?.summary ?? 'Show as table'}</summary>
          {isTableOpen && (
            <Table
              name={table?.name ?? title}
              columns={columns}
              rows={rows}
              rowKey={(row) => String(rows.indexOf(row))}
              sortedBy={table?.sortedBy}
            />
          )}
        </details>
      )}
    </figure>
  );
}

const margins = { marginLeft: 48, marginRight: 16, marginTop: 22, marginBottom: 38 };

/** The content security policy forbids the style rules of Plot. style.css contains them. */
function renderPlot(options: Plot.PlotOptions, title: string): Element {
  const figure = Plot.plot({ ...margins, className: 'plot', ...options, ariaLabel: title });
  for (const style of figure.querySelectorAll('style')) style.remove();
  // Screen readers get one image with one label.
  for (const part of figure.querySelectorAll('[aria-label]')) part.removeAttribute('aria-label');
  figure.setAttribute('role', 'img');
  return figure;
}

const Legend = ({ series }: { series: Series }) => (
  <ul class="legend">
    {Object.entries(series).map(([name, color]) => (
      <li key={name}>
        <svg width="12" height="12" aria-hidden="true">
          <circle cx="6" cy="6" r="5" fill={`var(--${color})`} />
        </svg>
        {name}
      </li>
    ))}
  </ul>
);
