import { useRef, useState } from 'preact/hooks';

export interface Action<Args extends readonly unknown[]> {
  readonly isBusy: boolean;
  readonly error: unknown;
  /** @returns false on an error, or while another run is in progress */
  readonly run: (...args: Args) => Promise<boolean>;
  readonly clear: () => void;
}

/** For actions that change stored data. */
export function useAction<Args extends readonly unknown[]>(
  perform: (...args: Args) => Promise<unknown>,
): Action<Args> {
  const [state, setState] = useState<{ isBusy: boolean; error: unknown }>({ isBusy: false, error: null });
  const isBusy = useRef(false);
  const finish = (error: unknown): void => {
    isBusy.current = false;
    setState({ isBusy: false, error });
  };
  const run = async (...args: Args): Promise<boolean> => {
    if (isBusy.current) return false;
    isBusy.current = true;
    setState({ isBusy: true, error: null });
    try {
      await perform(...args);
    } catch (error) {
      finish(error);
      return false;
    }
    finish(null);
    return true;
  };
  return { ...state, run, clear: () => setState({ isBusy: false, error: null }) };
}
