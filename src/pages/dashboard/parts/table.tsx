import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { type CellValue, downloadCsv, formatCsv } from '../base/csv.js';
import { useEntryState } from '../base/entry-state.js';
import { formatDayTime, formatNumber, missingText, pluralize } from '../base/format.js';
import { updateQuery, useRoute } from '../base/route.js';
import { formatLocalTime } from '../base/school-days.js';
import { Button } from './button.jsx';

export interface Column<Row> {
  readonly title: string;
  /** For sorting and for the CSV file. */
  readonly value: (row: Row) => CellValue;
  /** Default: the value. */
  readonly show?: (row: Row) => ComponentChildren;
  /** Explains the column. */
  readonly about?: string;
  readonly align?: 'start' | 'end';
  /** Only in the CSV file. */
  readonly isForFile?: boolean;
  /** Phones show the table as cards, with the title of this column. */
  readonly isLabelled?: boolean;
  /** Has buttons: not sortable, not in the CSV file. */
  readonly isAction?: boolean;
}

/** Fields that the table can sort and export. */
type CellField<Row> = { [Name in keyof Row]: Row[Name] extends CellValue ? Name : never }[keyof Row];

interface ColumnOptions<Row, Value> extends Omit<Column<Row>, 'title' | 'value'> {
  /** Replaces `show`, and receives the value. */
  readonly format?: (value: Value) => ComponentChildren;
  /** RFC 3339. Default format: day and time. The CSV file has the local time with its offset. */
  readonly isTime?: boolean;
}

interface ColumnBuilder<Row> {
  <Name extends CellField<Row>>(
    title: string,
    source: Name,
    options?: ColumnOptions<Row, Row[Name]>,
  ): Column<Row>;
  <Value>(
    title: string,
    source: (row: Row) => Value & CellValue,
    options?: ColumnOptions<Row, Value>,
  ): Column<Row>;
}

export const createColumnBuilder =
  <Row,>(): ColumnBuilder<Row> =>
  (
    title: string,
    source: CellField<Row> | ((row: Row) => CellValue),
    allOptions: ColumnOptions<Row, never> = {},
  ) => {
    const { isTime, format = isTime ? formatDayTime : undefined, ...options } = allOptions;
    const read = typeof source === 'function' ? source : (row: Row) => row[source] as CellValue;
    const value = isTime ? (row: Row) => toFileTime(read(row) as string | null) : read;
    return { title, value, ...(format && { show: (row: Row) => format(value(row) as never) }), ...options };
  };

const toFileTime = (time: string | null): string | null => time && formatLocalTime(time);

export const createActionColumn = <Row,>(show: (row: Row) => ComponentChildren): Column<Row> => ({
  ...{ title: 'Actions', isAction: true, value: () => null, show },
});

/** Set `aria-label` if the text does not name the row. */
type RowButtonProps = Omit<ButtonHTMLAttributes, 'name'>;

export const RowButton = (attributes: RowButtonProps) => <Button class="quiet" {...attributes} />;

export interface TableProps<Row> {
  /** For screen readers and the file name. */
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  readonly empty?: string;
  readonly filter?: boolean;
  /** Initial order; default: the order of `rows`. */
  readonly sortedBy?: readonly [title: string, descending: boolean] | undefined;
  /** Query parameter for the chosen order; only for the main table of a page. */
  readonly orderParameter?: string;
}

/** A whole class, so that it can be printed. */
const initialRows = 500;

export function Table<Row>({
  name,
  columns,
  rows,
  rowKey,
  empty,
  filter = false,
  sortedBy,
  orderParameter,
}: TableProps<Row>) {
  const [order, setOrder] = useOrder(columns, sortedBy ?? null, orderParameter);
  const [text, setText] = useEntryState(`${name} filter`, '');
  const [rowLimit, setRowLimit] = useEntryState(`${name} rows`, initialRows);
  const filteredRows = useMemo(() => filterRows(rows, columns, text), [rows, columns, text]);
  const orderedRows = useMemo(() => sortRows(filteredRows, columns, order), [filteredRows, columns, order]);
  const fileColumns = columns.filter(({ isAction }) => isAction !== true);
  const saveCsv = (): void =>
    downloadCsv(
      `${name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '-')}.csv`,
      formatCsv(
        fileColumns.map(({ title }) => title),
        orderedRows.map((row) => fileColumns.map(({ value }) => value(row))),
      ),
    );
  const shownColumns = columns.filter(({ isForFile }) => isForFile !== true);
  if (rows.length === 0) return <p class="soft">{empty ?? 'No data yet.'}</p>;
  return (
    <div class={`table ${columns.some(({ isLabelled }) => isLabelled) ? 'cards' : ''}`}>
      <div class="table-tools">
        {filter && (
          <input
            type="search"
            aria-label={`Filter ${name}`}
            placeholder="Filter"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
        <span class="soft">
          {filteredRows.length === rows.length
            ? pluralize(rows.length, 'row')
            : `${formatNumber(filteredRows.length)} of ${pluralize(rows.length, 'row')}`}
        </span>
        <Button class="quiet" onClick={saveCsv}>
          Download CSV
        </Button>
      </div>
      {/* The tab stop lets keyboard users scroll the table. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: see above */}
      <section class="scroll" tabIndex={0} aria-label={name}>
        <table>
          <caption class="hidden">{name}</caption>
          <thead>
            <tr>
              {shownColumns.map((column) => (
                <HeaderCell
                  key={column.title}
                  column={column}
                  class={resolveClass(column, rows)}
                  order={order}
                  onOrder={setOrder}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {orderedRows.slice(0, rowLimit).map((row) => (
              <tr key={rowKey(row)}>
                {shownColumns.map((column) => (
                  <td key={column.title} class={resolveClass(column, rows)} data-title={column.title}>
                    {renderCell(column, row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {orderedRows.length > rowLimit && (
        <Button onClick={() => setRowLimit(rowLimit + 10 * initialRows)}>
          Show more ({formatNumber(orderedRows.length - rowLimit)} hidden)
        </Button>
      )}
      <ColumnMeanings columns={shownColumns} />
    </div>
  );
}

type SortOrder = readonly [title: string, descending: boolean] | null;

/** The URL has the column title, after a minus for descending order. */
function useOrder<Row>(
  columns: readonly Column<Row>[],
  initialOrder: SortOrder,
  parameter: string | undefined,
) {
  const { query } = useRoute();
  const [order, setOrder] = useState(initialOrder);
  if (parameter === undefined) return [order, setOrder] as const;
  const [, minus, title] = /^(-?)(.*)$/s.exec(query[parameter] ?? '') ?? [];
  const isKnown = columns.some((column) => column.title === title);
  const set = (chosen: SortOrder): void =>
    updateQuery({ [parameter]: chosen === null ? null : `${chosen[1] ? '-' : ''}${chosen[0]}` });
  return [isKnown ? ([title as string, minus === '-'] as const) : initialOrder, set] as const;
}

/** For touch, keyboards and screen readers, which get no tooltips. */
function ColumnMeanings<Row>({ columns }: { columns: readonly Column<Row>[] }) {
  const explained = columns.filter(({ about }) => about !== undefined);
  if (explained.length === 0) return null;
  return (
    <details>
      <summary>Column descriptions</summary>
      <dl class="meanings">
        {explained.map(({ title, about }) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

interface HeaderCellProps<Row> {
  readonly column: Column<Row>;
  readonly class: string;
  readonly order: SortOrder;
  readonly onOrder: (order: SortOrder) => void;
}

function HeaderCell<Row>({
  column: { title, about, isAction = false },
  class: className,
  order,
  onOrder,
}: HeaderCellProps<Row>) {
  const isSorted = order?.[0] === title;
  const descending = isSorted ? !order[1] : className.startsWith('number');
  if (isAction)
    return (
      <th scope="col" class="acts">
        {title}
      </th>
    );
  return (
    <th
      scope="col"
      class={className}
      aria-sort={isSorted ? (order[1] ? 'descending' : 'ascending') : undefined}
    >
      <Button title={about} onClick={() => onOrder([title, descending])}>
        {title}
        <span aria-hidden="true">{isSorted ? (order[1] ? ' ▾' : ' ▴') : ''}</span>
      </Button>
    </th>
  );
}

const resolveClass = <Row,>(column: Column<Row>, rows: readonly Row[]): string =>
  `${resolveAlignment(column, rows) === 'end' ? 'number' : ''} ${column.isLabelled ? 'labelled' : ''}`.trim();

function resolveAlignment<Row>({ align, value }: Column<Row>, rows: readonly Row[]): 'start' | 'end' {
  if (align !== undefined) return align;
  const first = rows.find((row) => value(row) !== null);
  return first !== undefined && typeof value(first) === 'number' ? 'end' : 'start';
}

function renderCell<Row>({ value, show }: Column<Row>, row: Row): ComponentChildren {
  if (show !== undefined) return show(row);
  const cell = value(row);
  if (cell === null) return missingText;
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  return typeof cell === 'number' ? formatNumber(cell) : <bdi>{cell}</bdi>;
}

function filterRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  text: string,
): readonly Row[] {
  const needle = text.trim().toLowerCase();
  if (needle === '') return rows;
  return rows.filter((row) =>
    columns.some(({ value }) =>
      String(value(row) ?? '')
        .toLowerCase()
        .includes(needle),
    ),
  );
}

/** Unknown values come last. */
function sortRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: SortOrder,
): readonly Row[] {
  const column = columns.find(({ title }) => title === order?.[0]);
  if (column === undefined || order === null) return rows;
  const sign = order[1] ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return sign * (typeof x === 'string' ? x.localeCompare(String(y)) : Number(x) - Number(y));
  });
}
