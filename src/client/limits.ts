export interface QueueLimits {
  /** Above, `track` rejects with QUEUE_FULL. */
  readonly answers: number;
  /** Per request, 1 to 1000. */
  readonly batchAnswers: number;
  /** Per request. */
  readonly batchBytes: number;
  /** Wait for further answers to share a request. */
  readonly lingerMs: number;
  /** Concurrent. */
  readonly requests: number;
  /** The service remembers event ids for 24 hours. */
  readonly maxAgeMs: number;
}

export const standardLimits: QueueLimits = {
  answers: 10_000,
  batchAnswers: 200,
  // The service accepts 1 MiB, envelope included.
  batchBytes: 1_000_000,
  lingerMs: 1000,
  requests: 4,
  maxAgeMs: 23 * 3_600_000,
};
