/**
 * Closed loop: requests are due when a connection is free. Open loop: at fixed times, so waiting counts as
 * latency.
 */
export interface Schedule {
  /** Requests due by then. @param elapsedMs milliseconds since the start */
  countDue(elapsedMs: number): number;
  /** Milliseconds since the start; null in a closed loop. */
  dueAt(i: number): number | null;
  readonly endMs: number;
}

/** @param rate requests per second */
export function createOpenLoop(rate: number, seconds: number): Schedule {
  const total = Math.floor(rate * seconds);
  return {
    countDue: (elapsedMs) => Math.min(total, Math.floor((elapsedMs * rate) / 1000) + 1),
    dueAt: (i) => (i * 1000) / rate,
    endMs: 1000 * seconds,
  };
}

export function createClosedLoop(seconds: number): Schedule {
  const endMs = 1000 * seconds;
  return {
    countDue: (elapsedMs) => (elapsedMs < endMs ? Number.POSITIVE_INFINITY : 0),
    dueAt: () => null,
    endMs,
  };
}
