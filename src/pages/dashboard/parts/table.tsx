import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { type Cell, csvOf, download } from '../base/csv.js';
import { grouped, none } from '../base/format.js';
import { look, useRoute } from '../base/route.js';
import { Button } from './button.jsx';

export interface Column<Row> {
  readonly title: string;
  /** For sorting and for the CSV file. */
  readonly value: (row: Row) => Cell;
  /** Default: the value. */
  readonly show?: (row: Row) => ComponentChildren;
  /** Explains the column. */
  readonly about?: string;
  readonly align?: 'start' | 'end';
  /** Only in the CSV file. */
  readonly isForFile?: boolean;
  /** Has buttons: not sortable, not in the CSV file. */
  readonly isAction?: boolean;
}

/** Fields that the table can sort and export. */
type FieldOf<Row> = { [Name in keyof Row]: Row[Name] extends Cell ? Name : never }[keyof Row];

interface FieldOptions<Row, Value> extends Omit<Column<Row>, 'title' | 'value'> {
  /** Replaces `show`, and receives the value. */
  readonly format?: (value: Value) => ComponentChildren;
}

interface Fields<Row> {
  <Name extends FieldOf<Row>>(title: string, of: Name, options?: FieldOptions<Row, Row[Name]>): Column<Row>;
  <Value>(title: string, of: (row: Row) => Value & Cell, options?: FieldOptions<Row, Value>): Column<Row>;
}

export const fieldsOf =
  <Row,>(): Fields<Row> =>
  (
    title: string,
    of: FieldOf<Row> | ((row: Row) => Cell),
    { format, ...options }: FieldOptions<Row, never> = {},
  ) => {
    const value = typeof of === 'function' ? of : (row: Row) => row[of] as Cell;
    return { title, value, ...(format && { show: (row: Row) => format(value(row) as never) }), ...options };
  };

export const actionColumn = <Row,>(show: (row: Row) => ComponentChildren): Column<Row> => ({
  ...{ title: 'Do', isAction: true, value: () => null, show },
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
  readonly orderedIn?: string;
}

const firstRows = 100;

export function Table<Row>({
  name,
  columns,
  rows,
  rowKey,
  empty,
  filter = false,
  sortedBy,
  orderedIn,
}: TableProps<Row>) {
  const [order, setOrder] = useOrder(columns, sortedBy ?? null, orderedIn);
  const [text, setText] = useState('');
  const [most, setMost] = useState(firstRows);
  const found = useMemo(() => filtered(rows, columns, text), [rows, columns, text]);
  const sorted = useMemo(() => sortedRows(found, columns, order), [found, columns, order]);
  const fileColumns = columns.filter(({ isAction }) => isAction !== true);
  const save = (): void =>
    download(
      `${name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '-')}.csv`,
      csvOf(
        fileColumns.map(({ title }) => title),
        sorted.map((row) => fileColumns.map(({ value }) => value(row))),
      ),
    );
  const shownColumns = columns.filter(({ isForFile }) => isForFile !== true);
  if (rows.length === 0) return <p class="soft">{empty ?? 'Nothing yet.'}</p>;
  return (
    <div class="table">
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
          {found.length === rows.length
            ? grouped(rows.length)
            : `${grouped(found.length)} of ${grouped(rows.length)}`}
        </span>
        <Button class="quiet" onClick={save}>
          CSV
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
                <Head
                  key={column.title}
                  column={column}
                  isNumeric={alignOf(column, rows) === 'end'}
                  order={order}
                  onOrder={setOrder}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, most).map((row) => (
              <tr key={rowKey(row)}>
                {shownColumns.map((column) => (
                  <td key={column.title} class={alignOf(column, rows) === 'end' ? 'number' : undefined}>
                    {shown(column, row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {sorted.length > most && (
        <Button onClick={() => setMost(most + 10 * firstRows)}>
          Show more of {grouped(sorted.length - most)}
        </Button>
      )}
      <Meanings columns={shownColumns} />
    </div>
  );
}

type Order = readonly [title: string, descending: boolean] | null;

/** The URL has the column title, after a minus for descending order. */
function useOrder<Row>(columns: readonly Column<Row>[], first: Order, place: string | undefined) {
  const { query } = useRoute();
  const [order, setOrder] = useState(first);
  if (place === undefined) return [order, setOrder] as const;
  const [, minus, title] = /^(-?)(.*)$/s.exec(query[place] ?? '') ?? [];
  const isKnown = columns.some((column) => column.title === title);
  const set = (chosen: Order): void =>
    look({ [place]: chosen === null ? null : `${chosen[1] ? '-' : ''}${chosen[0]}` });
  return [isKnown ? ([title as string, minus === '-'] as const) : first, set] as const;
}

/** For touch, keyboards and screen readers, which get no tooltips. */
function Meanings<Row>({ columns }: { columns: readonly Column<Row>[] }) {
  const explained = columns.filter(({ about }) => about !== undefined);
  if (explained.length === 0) return null;
  return (
    <details>
      <summary>What the columns mean</summary>
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

interface HeadProps<Row> {
  readonly column: Column<Row>;
  readonly isNumeric: boolean;
  readonly order: Order;
  readonly onOrder: (order: Order) => void;
}

function Head<Row>({
  column: { title, about, isAction = false },
  isNumeric,
  order,
  onOrder,
}: HeadProps<Row>) {
  const isSorted = order?.[0] === title;
  const descending = isSorted ? !order[1] : isNumeric;
  if (isAction)
    return (
      <th scope="col" class="acts">
        {title}
      </th>
    );
  return (
    <th
      scope="col"
      class={isNumeric ? 'number' : undefined}
      aria-sort={isSorted ? (order[1] ? 'descending' : 'ascending') : undefined}
    >
      <Button title={about} onClick={() => onOrder([title, descending])}>
        {title}
        <span aria-hidden="true">{isSorted ? (order[1] ? ' ▾' : ' ▴') : ''}</span>
      </Button>
    </th>
  );
}

function alignOf<Row>({ align, value }: Column<Row>, rows: readonly Row[]): 'start' | 'end' {
  if (align !== undefined) return align;
  const first = rows.find((row) => value(row) !== null);
  return first !== undefined && typeof value(first) === 'number' ? 'end' : 'start';
}

function shown<Row>({ value, show }: Column<Row>, row: Row): ComponentChildren {
  if (show !== undefined) return show(row);
  const cell = value(row);
  if (cell === null) return none;
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  return typeof cell === 'number' ? grouped(cell) : <bdi>{cell}</bdi>;
}

function filtered<Row>(rows: readonly Row[], columns: readonly Column<Row>[], text: string): readonly Row[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return rows;
  return rows.filter((row) =>
    columns.some(({ value }) =>
      String(value(row) ?? '')
        .toLowerCase()
        .includes(wanted),
    ),
  );
}

/** Unknown values come last. */
function sortedRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: Order,
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
