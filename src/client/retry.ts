import { sleep } from './deadline.js';
import { SkilltraceError } from './errors.js';

export interface RetryPolicy {
  /** 1: no retry. */
  readonly tries: number;
  /** No attempt starts later than this after the call. */
  readonly withinMs: number;
  /** Maximum delay after the first failure; doubles with each failure. */
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
}

export const defaultRetry: RetryPolicy = {
  tries: 5,
  withinMs: 60_000,
  firstDelayMs: 200,
  longestDelayMs: 10_000,
};

/**
 * Retry-After plus a random part of a limit that doubles: clients that failed together do not retry together.
 */
export function computeDelayMs(
  policy: RetryPolicy,
  failures: number,
  { retryAfterMs }: SkilltraceError,
): number {
  const bound = Math.min(policy.longestDelayMs, policy.firstDelayMs * 2 ** (failures - 1));
  return (retryAfterMs ?? 0) + Math.random() * bound;
}

interface RetryOptions {
  readonly policy: RetryPolicy;
  /** False if an earlier attempt could make a retry fail. */
  readonly isRepeatable: boolean;
  readonly signal: AbortSignal | undefined;
}

/** @throws SkilltraceError of the last attempt */
export async function withRetries<Value>(
  call: () => Promise<Value>,
  { policy, isRepeatable, signal }: RetryOptions,
): Promise<Value> {
  const endsAt = Date.now() + policy.withinMs;
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof SkilltraceError)) throw error;
      error.tries = tries;
      const mayRepeat = error.hadNoEffect || (error.retryable && isRepeatable);
      const waitMs = computeDelayMs(policy, tries, error);
      if (!mayRepeat || tries >= policy.tries || Date.now() + waitMs > endsAt) throw error;
      await sleep(waitMs, signal);
    }
  }
}
