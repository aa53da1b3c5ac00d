import { useEffect, useState } from 'preact/hooks';

export interface Load<Data> {
  /** Stays while it is loaded again with the same inputs. */
  readonly data: Data | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/**
 * What `read` resolves to; asked for again when an input changes, which ends the question before.
 * @param inputs compared one by one
 * @param keeps shows what was there until the new answer comes: for what is about the same thing, such as another range of days
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
