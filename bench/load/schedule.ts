/**
 * When requests are due. In a closed loop whenever a connection is free; in an open loop at fixed times that do not
 * wait for answers: a request that finds all connections busy waits, and its waiting counts.
 */
export interface Schedule {
  /** How many requests are due by this time, milliseconds since the start. */
  dueBy(elapsedMs: number): number;
  /** When the i-th request (from 0) is due, in milliseconds since the start; null where requests follow answers. */
  dueAt(i: number): number | null;
  /** After this time no further request becomes due. */
  readonly endMs: number;
}

/** @param rate requests per second, spread evenly from the start on */
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
