import { useEffect, useState } from 'preact/hooks';
import type { LiveFigures } from '../../../../client/types.js';
import type { Api } from '../../base/session.js';
import { streamLiveFigures } from './live-stream.js';

export const windowMs = 5 * 60_000;

export interface Disconnection {
  readonly error: unknown;
  /** Until the next attempt; null without retry. */
  readonly waitMs: number | null;
}

export interface LiveState {
  /** Last five minutes, oldest first. */
  readonly figures: readonly LiveFigures[];
  /** Unix milliseconds on the clock of the browser. */
  readonly receivedAt: number;
  readonly isPaused: boolean;
  readonly setPaused: (isPaused: boolean) => void;
  readonly disconnection: Disconnection | null;
  readonly reconnect: () => void;
}

/** Pauses the stream while the page is hidden. */
export function useLiveFigures(api: Api): LiveState {
  const [figures, setFigures] = useState<readonly LiveFigures[]>([]);
  const [receivedAt, setReceivedAt] = useState(0);
  const [isPaused, setPaused] = useState(false);
  const [disconnection, setLost] = useState<Disconnection | null>(null);
  const [reconnectCount, setReconnectCount] = useState(0);
  const isVisible = useVisibility();
  useEffect(() => {
    if (isPaused || !isVisible) return;
    const abort = new AbortController();
    void streamLiveFigures(api, {
      signal: abort.signal,
      onFigures: (next) => {
        setLost(null);
        setReceivedAt(Date.now());
        setFigures((before) => selectRecent([...before, next]));
      },
      onDisconnect: (error, waitMs) => setLost({ error, waitMs }),
    });
    return () => abort.abort();
  }, [api, isPaused, isVisible, reconnectCount]);
  return {
    figures,
    receivedAt,
    isPaused,
    setPaused,
    disconnection,
    reconnect: () => setReconnectCount((count) => count + 1),
  };
}

function selectRecent(figures: readonly LiveFigures[]): readonly LiveFigures[] {
  const from = Date.parse(figures.at(-1)?.at ?? '') - windowMs;
  return figures.filter(({ at }) => Date.parse(at) >= from);
}

function useVisibility(): boolean {
  const [isVisible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const update = (): void => setVisible(!document.hidden);
    document.addEventListener('visibilitychange', update);
    return () => document.removeEventListener('visibilitychange', update);
  }, []);
  return isVisible;
}
