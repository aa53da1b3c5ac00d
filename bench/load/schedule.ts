/**
 * Closed loop: requests are due when a connection is free. Open loop: at fixed times, so waiting counts as
 * latency.
 */
export interface Schedule {
  /** Milliseconds since the start. */
  dueBy(elapsedMs: number): number;
  /** Milliseconds since the start; null in a closed loop. */
  dueAt(i: number): number | null;
  readonly endMs: number;
}

/** @param rate requests per second */
export function openLoop(rate: number, seconds: number): Schedule {
  const total = Math.floor(rate * seconds);
  return {
    dueBy: (elapsedMs) => Math.min(total, Math.floor((elapsedMs * rate) / 1000) + 1),
    dueAt: (i) => (i * 1000) / rate,
    endMs: 1000 * seconds,
  };
}

export function closedLoop(seconds: number): Schedule {
  const endMs = 1000 * seconds;
  return {
    dueBy: (elapsedMs) => (elapsedMs < endMs ? Number.POSITIVE_INFINITY : 0),
    dueAt: () => null,
    endMs,
  };
}
