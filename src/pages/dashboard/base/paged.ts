import { useEffect, useMemo, useState } from 'preact/hooks';

type ListPage<Row, Name extends string> = Readonly<Record<Name, readonly Row[]>> & {
  readonly next_cursor: string | null;
};

export interface Paged<Row> {
  /** Rows of all loaded pages; null before the first. */
  readonly rows: readonly Row[] | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Null on the last page. */
  readonly more: (() => void) | null;
  readonly reload: () => void;
}

interface State<Row> {
  /** Compared by identity. */
  readonly list: readonly unknown[];
  readonly rows: readonly Row[] | null;
  readonly next: string | null;
  readonly error: unknown;
  readonly isLoading: boolean;
}

const nothing = { rows: null, next: null, error: null, isLoading: true };

/** Loads a list page by page. A changed input starts a new list. */
export function usePaged<Row, Name extends string>(
  read: (page: { cursor: string | undefined; signal: AbortSignal }) => Promise<ListPage<Row, Name>>,
  name: Name,
  inputs: readonly unknown[],
): Paged<Row> {
  const list = useMemo(() => inputs, inputs);
  const [state, setState] = useState<State<Row>>({ list, ...nothing });
  const [wanted, want] = useState<{ list: readonly unknown[]; cursor?: string }>({ list });
  useEffect(() => {
    const abort = new AbortController();
    const cursor = wanted.list === list ? wanted.cursor : undefined;
    const setIfWanted = (change: (before: State<Row>) => State<Row>): void => {
      if (!abort.signal.aborted) setState(change);
    };
    setState((before) =>
      before.list === list ? { ...before, error: null, isLoading: true } : { list, ...nothing },
    );
    read({ cursor, signal: abort.signal }).then(
      ({ next_cursor: next, [name]: rows }) =>
        setIfWanted((before) => ({
          ...{ list, next, error: null, isLoading: false },
          rows: cursor === undefined ? rows : [...(before.rows ?? []), ...rows],
        })),
      (error) => setIfWanted((before) => ({ ...before, error, isLoading: false })),
    );
    return () => abort.abort();
  }, [list, wanted]);
  const { rows, next, error, isLoading } = state;
  return {
    ...{ rows, error, isLoading },
    more: next === null ? null : () => want({ list, cursor: next }),
    reload: () => want({ list }),
  };
}
