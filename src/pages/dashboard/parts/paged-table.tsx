import type { ComponentChildren } from 'preact';
import type { PagedList } from '../base/paged-list.js';
import { Button } from './button.jsx';
import { ErrorNote, Loading } from './loaded.jsx';
import { Table, type TableProps } from './table.jsx';

interface PagedTableProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly list: PagedList<Row>;
  readonly subject: string;
  /** Shown above the table. */
  readonly children?: ComponentChildren;
}

export function PagedTable<Row>({ list, subject, children, ...table }: PagedTableProps<Row>) {
  return (
    <>
      {list.error !== null && <ErrorNote error={list.error} retry={list.reload} />}
      {children}
      {list.rows === null ? (
        list.error === null && <Loading subject={subject} />
      ) : (
        <Table {...table} rows={list.rows} />
      )}
      {list.loadMore !== null && (
        <div>
          <Button disabled={list.isLoading} onClick={list.loadMore}>
            Load more
          </Button>
        </div>
      )}
    </>
  );
}
