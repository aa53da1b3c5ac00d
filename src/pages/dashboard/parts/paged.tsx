import type { ComponentChildren } from 'preact';
import type { Paged } from '../base/paged.js';
import { Button } from './button.jsx';
import { ErrorNote, Loading } from './loaded.jsx';
import { Table, type TableProps } from './table.jsx';

interface PagedTableProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly of: Paged<Row>;
  readonly what: string;
  /** Shown above the table. */
  readonly children?: ComponentChildren;
}

export function PagedTable<Row>({ of, what, children, ...table }: PagedTableProps<Row>) {
  return (
    <>
      {of.error !== null && <ErrorNote error={of.error} retry={of.reload} />}
      {children}
      {of.rows === null ? of.error === null && <Loading what={what} /> : <Table {...table} rows={of.rows} />}
      {of.more !== null && (
        <div>
          <Button disabled={of.isLoading} onClick={of.more}>
            Load more
          </Button>
        </div>
      )}
    </>
  );
}
