import { useEffect, useState } from 'preact/hooks';

export interface Page<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

export interface Paged<Row> {
  /** Of all pages that were read; null before the first. */
  readonly rows: readonly Row[] | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Reads the next page; null where there is none. */
  readonly more: (() => void) | null;
  /** From the first page again. */
  readonly reload: () => void;
}

type State<Row> = Omit<Paged<Row>, 'more' | 'reload'> & { readonly next: string | null };

/**
 * A list of the API, page by page as somebody asks for more.
 * @param read a page, `cursor` undefined for the first @param inputs compared one by one; another list begins with each
 */
export function usePaged<Row>(
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<Row>>,
  inputs: readonly unknown[],
): Paged<Row> {
  const [state, setState] = useState<State<Row>>({ rows: null, next: null, error: null, isLoading: true });
  const [wanted, want] = useState<{ readonly cursor?: string }>({});
  const begin = (): void => want({});
  useEffect(() => {
    setState({ rows: null, next: null, error: null, isLoading: true });
    begin();
  }, inputs);
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, error: null, isLoading: true }));
    read(wanted.cursor, abort.signal).then(
      ({ rows, next }) => {
        if (abort.signal.aborted) return;
        const kept = wanted.cursor === undefined ? [] : null;
        setState((before) => ({
          ...{ rows: [...(kept ?? before.rows ?? []), ...rows], next },
          ...{ error: null, isLoading: false },
        }));
      },
      (error) => !abort.signal.aborted && setState((before) => ({ ...before, error, isLoading: false })),
    );
    return () => abort.abort();
  }, [wanted]);
  const { next } = state;
  return { ...state, more: next === null ? null : () => want({ cursor: next }), reload: begin };
}
