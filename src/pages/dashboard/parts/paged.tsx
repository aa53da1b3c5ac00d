import type { ComponentChildren } from 'preact';
import type { Paged } from '../base/paged.js';
import { ErrorNote, Loading } from './loaded.jsx';

interface PagedProps<Row> {
  readonly of: Paged<Row>;
  readonly what: string;
  readonly children: (rows: readonly Row[]) => ComponentChildren;
}

/** Rows of a list that is read page by page, with a button for the next page. */
export function PagedRows<Row>({ of, what, children }: PagedProps<Row>) {
  return (
    <>
      {of.error !== null && <ErrorNote error={of.error} retry={of.reload} />}
      {of.rows === null ? of.error === null && <Loading what={what} /> : children(of.rows)}
      {of.more !== null && (
        <div>
          <button type="button" disabled={of.isLoading} onClick={of.more}>
            Load more
          </button>
        </div>
      )}
    </>
  );
}
