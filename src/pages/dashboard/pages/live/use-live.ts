import { useEffect, useState } from 'preact/hooks';
import type { LiveFigures } from '../../../../client/types.js';
import type { Api } from '../../base/session.js';
import { followLive } from './follow.js';

const keptMs = 5 * 60_000;

export interface Lost {
  readonly error: unknown;
  /** Until the next attempt; null without retry. */
  readonly waitMs: number | null;
}

export interface Live {
  /** Last five minutes, oldest first. */
  readonly figures: readonly LiveFigures[];
  readonly isPaused: boolean;
  readonly setPaused: (isPaused: boolean) => void;
  readonly lost: Lost | null;
  readonly again: () => void;
}

/** Pauses the stream while the page is hidden. */
export function useLive(api: Api): Live {
  const [figures, setFigures] = useState<readonly LiveFigures[]>([]);
  const [isPaused, setPaused] = useState(false);
  const [lost, setLost] = useState<Lost | null>(null);
  const [turn, setTurn] = useState(0);
  const isVisible = useVisibility();
  useEffect(() => {
    if (isPaused || !isVisible) return;
    const abort = new AbortController();
    void followLive(api, {
      signal: abort.signal,
      onFigures: (next) => {
        setLost(null);
        setFigures((before) => kept([...before, next]));
      },
      onLost: (error, waitMs) => setLost({ error, waitMs }),
    });
    return () => abort.abort();
  }, [api, isPaused, isVisible, turn]);
  return { figures, isPaused, setPaused, lost, again: () => setTurn((count) => count + 1) };
}

function kept(figures: readonly LiveFigures[]): readonly LiveFigures[] {
  const from = Date.parse(figures.at(-1)?.at ?? '') - keptMs;
  return figures.filter(({ at }) => Date.parse(at) >= from);
}

function useVisibility(): boolean {
  const [isVisible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const hear = (): void => setVisible(!document.hidden);
    document.addEventListener('visibilitychange', hear);
    return () => document.removeEventListener('visibilitychange', hear);
  }, []);
  return isVisible;
}
