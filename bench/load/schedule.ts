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

/** @param rate requests per second @param offset of the first request, in intervals */
export function createOpenLoop(rate: number, seconds: number, offset = 0): Schedule {
  // Without the last term, a rounding error could add a request.
  const total = Math.max(0, Math.ceil(rate * seconds - offset - 1e-6));
  return {
    countDue: (elapsedMs) => Math.min(total, Math.max(0, Math.floor((elapsedMs * rate) / 1000 - offset) + 1)),
    dueAt: (i) => ((i + offset) * 1000) / rate,
    endMs: 1000 * seconds,
  };
}

/** @param size requests that are due together at the start of each second */
export const createBurstLoop = (size: number, seconds: number): Schedule => ({
  countDue: (elapsedMs) => size * Math.min(Math.ceil(seconds), Math.floor(elapsedMs / 1000) + 1),
  dueAt: (i) => 1000 * Math.floor(i / size),
  endMs: 1000 * seconds,
});

export function createClosedLoop(seconds: number): Schedule {
  const endMs = 1000 * seconds;
  return {
    countDue: (elapsedMs) => (elapsedMs < endMs ? Number.POSITIVE_INFINITY : 0),
    dueAt: () => null,
    endMs,
  };
}
