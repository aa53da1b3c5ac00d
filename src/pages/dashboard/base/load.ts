import { useEffect, useState } from 'preact/hooks';

export interface Load<Data> {
  /** Kept while a reload with the same inputs runs. */
  readonly data: Data | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/**
 * Loads data, again when an input changes. The previous request is aborted.
 * @param inputs compared one by one
 * @param keeps shows the previous data until the new ones arrive, for example with another range of days
 */
export function useLoad<Data>(
  read: (signal: AbortSignal) => Promise<Data>,
  inputs: readonly unknown[],
  keeps = false,
): Load<Data> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<Omit<Load<Data>, 'reload'>>({
    data: null,
    error: null,
    isLoading: true,
  });
  useEffect(() => {
    if (!keeps) setState({ data: null, error: null, isLoading: true });
  }, inputs);
  useEffect(() => {
    const abort = new AbortController();
    setState(({ data }) => ({ data, error: null, isLoading: true }));
    read(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ data, error: null, isLoading: false }),
      (error) => !abort.signal.aborted && setState({ data: null, error, isLoading: false }),
    );
    return () => abort.abort();
  }, [...inputs, turn]);
  return { ...state, reload: () => setTurn((count) => count + 1) };
}
