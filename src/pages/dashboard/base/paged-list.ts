import { useEffect, useMemo, useState } from 'preact/hooks';

type ListPage<Row, Name extends string> = Readonly<Record<Name, readonly Row[]>> & {
  readonly next_cursor: string | null;
};

export interface PagedList<Row> {
  /** Rows of all loaded pages; null before the first. */
  readonly rows: readonly Row[] | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Null on the last page. */
  readonly loadMore: (() => void) | null;
  readonly reload: () => void;
}

interface PagedState<Row> {
  /** Compared by identity. */
  readonly listInputs: readonly unknown[];
  readonly rows: readonly Row[] | null;
  readonly next: string | null;
  readonly error: unknown;
  readonly isLoading: boolean;
}

const emptyState = { rows: null, next: null, error: null, isLoading: true };

/** Loads a list page by page. A changed input starts a new list. */
export function usePagedList<Row, Name extends string>(
  loadPage: (page: { cursor: string | undefined; signal: AbortSignal }) => Promise<ListPage<Row, Name>>,
  rowsField: Name,
  inputs: readonly unknown[],
): PagedList<Row> {
  const listInputs = useMemo(() => inputs, inputs);
  const [state, setState] = useState<PagedState<Row>>({ listInputs, ...emptyState });
  const [request, setRequest] = useState<{ listInputs: readonly unknown[]; cursor?: string }>({ listInputs });
  useEffect(() => {
    const abort = new AbortController();
    const cursor = request.listInputs === listInputs ? request.cursor : undefined;
    const setIfCurrent = (change: (before: PagedState<Row>) => PagedState<Row>): void => {
      if (!abort.signal.aborted) setState(change);
    };
    setState((before) =>
      before.listInputs === listInputs
        ? { ...before, error: null, isLoading: true }
        : { listInputs, ...emptyState },
    );
    loadPage({ cursor, signal: abort.signal }).then(
      ({ next_cursor: next, [rowsField]: rows }) =>
        setIfCurrent((before) => ({
          ...{ listInputs, next, error: null, isLoading: false },
          rows: cursor === undefined ? rows : [...(before.rows ?? []), ...rows],
        })),
      (error) => setIfCurrent((before) => ({ ...before, error, isLoading: false })),
    );
    return () => abort.abort();
  }, [listInputs, request]);
  const { rows, next, error, isLoading } = state;
  return {
    ...{ rows, error, isLoading },
    loadMore: next === null ? null : () => setRequest({ listInputs, cursor: next }),
    reload: () => setRequest({ listInputs }),
  };
}
