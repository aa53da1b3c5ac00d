export interface QueueLimits {
  /** Most answers that are not settled; `track` rejects with QUEUE_FULL beyond. */
  readonly answers: number;
  /** Most answers of a request, 1 to 1000. */
  readonly batchAnswers: number;
  /** Most bytes of a request. */
  readonly batchBytes: number;
  /** How long an answer waits for others to share its request, in milliseconds. */
  readonly lingerMs: number;
  /** Requests at the same time. */
  readonly requests: number;
  /** How long an answer is tried, in milliseconds: the service remembers event ids for 24 hours. */
  readonly maxAgeMs: number;
}

export const standardLimits: QueueLimits = {
  answers: 10_000,
  batchAnswers: 200,
  // The service takes a MiB, envelope included.
  batchBytes: 1_000_000,
  lingerMs: 1000,
  requests: 4,
  maxAgeMs: 23 * 3_600_000,
};
