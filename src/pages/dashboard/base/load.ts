import { useEffect, useState } from 'preact/hooks';

export interface Load<Data> {
  /** Stays available during a reload with the same inputs. */
  readonly data: Data | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Loads again when an input changes, and aborts the previous request. */
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
