import { useEffect, useState } from 'preact/hooks';

export interface LoadState<Data> {
  /** Stays available during a reload with the same inputs. */
  readonly data: Data | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Loads again when an input changes, and aborts the previous request. */
export function useLoad<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  inputs: readonly unknown[],
  keepsPrevious = false,
): LoadState<Data> {
  const [reloadCount, setReloadCount] = useState(0);
  const [state, setState] = useState<Omit<LoadState<Data>, 'reload'>>({
    data: null,
    error: null,
    isLoading: true,
  });
  useEffect(() => {
    if (!keepsPrevious) setState({ data: null, error: null, isLoading: true });
  }, inputs);
  useEffect(() => {
    const abort = new AbortController();
    setState(({ data }) => ({ data, error: null, isLoading: true }));
    load(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ data, error: null, isLoading: false }),
      (error) => !abort.signal.aborted && setState({ data: null, error, isLoading: false }),
    );
    return () => abort.abort();
  }, [...inputs, reloadCount]);
  return { ...state, reload: () => setReloadCount((count) => count + 1) };
}
