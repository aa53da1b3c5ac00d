export interface QueueLimits {
  /** Limit of pending answers. Above it, `track` rejects with QUEUE_FULL. */
  readonly answers: number;
  /** Answers per request, 1 to 1000. */
  readonly batchAnswers: number;
  /** Bytes per request. */
  readonly batchBytes: number;
  /** Time that an answer waits for others to share its request. */
  readonly lingerMs: number;
  /** Maximum number of requests in flight. */
  readonly requests: number;
  /** Answers are retried for this time. The service remembers event ids for 24 hours. */
  readonly maxAgeMs: number;
}

export const defaultLimits: QueueLimits = {
  answers: 10_000,
  batchAnswers: 200,
  // The service accepts 1 MiB, envelope included.
  batchBytes: 1_000_000,
  lingerMs: 1000,
  requests: 4,
  maxAgeMs: 23 * 3_600_000,
};
