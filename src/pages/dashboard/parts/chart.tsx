/** A chart by Observable Plot, with its legend, and the same as a table for those who do not see it. */
import * as Plot from '@observablehq/plot';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { colorsOf, type Series } from '../../../lab/report/marks.js';
import { type Column, Table, type TableProps } from './table.jsx';

export interface ChartProps<Row> {
  readonly title: string;
  readonly about?: string;
  /** Names and colours (a to e of the style) of `stroke` and `fill`; a legend where they are several. */
  readonly series?: Series;
  /** Everything but the size; drawn again when it or `rows` are others. */
  readonly plot: (rows: readonly Row[]) => Plot.PlotOptions;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly height?: number;
  /** What the colours say, where they are no series. */
  readonly legend?: ComponentChildren;
  readonly empty?: string;
  /** Where the table behind it is of interest by itself: what it is called, and how it is sorted first. */
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
    const color = series && { ...colorsOf(series), legend: false };
    element.replaceChildren(draw({ ...(color && { color }), ...plot(rows), width, height }, title));
  }, [element, width, rows, plot]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      {about !== undefined && <p class="soft">{about}</p>}
      {series !== undefined && Object.keys(series).length > 1 && <Legend series={series} />}
      {rows.length > 0 && legend}
      {rows.length === 0 ? (
        <p class="soft">{empty ?? 'Nothing to draw yet.'}</p>
      ) : (
        <div class="drawing" ref={setElement} />
      )}
      {rows.length > 0 && (
        <details open={isTableOpen} onToggle={(event) => setTableOpen(event.currentTarget.open)}>
          <summary>{table?.summary ?? 'As a table'}</summary>
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

/** Plot puts rules for its texts into each drawing, which the page's policy forbids: they are in style.css. */
export function draw(options: Plot.PlotOptions, title: string): Element {
  const drawing = Plot.plot({ ...margins, className: 'plot', ...options, ariaLabel: title });
  for (const style of drawing.querySelectorAll('style')) style.remove();
  // One picture with one name: its groups have names as well, which have no role.
  for (const part of drawing.querySelectorAll('[aria-label]')) part.removeAttribute('aria-label');
  drawing.setAttribute('role', 'img');
  return drawing;
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

/** An element and its width in whole pixels, 0 until it is known. */
export function useWidth() {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (element === null) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return { element, width, setElement };
}
