import { sleep } from './deadline.js';
import { SkilltraceError } from './errors.js';

export interface RetryPolicy {
  /** Most tries of a call; 1 for none but the first. */
  readonly tries: number;
  /** A try that would begin later than this after the call is not made. */
  readonly withinMs: number;
  /** Upper bound of the wait after the first failure; it doubles with each. */
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
}

export const standardRetry: RetryPolicy = {
  tries: 5,
  withinMs: 60_000,
  firstDelayMs: 200,
  longestDelayMs: 10_000,
};

/**
 * Milliseconds to wait after the last of `failures` tries: what the service asks for, and on top a random share of a bound
 * that doubles, so that clients that failed together do not come back together.
 */
export function delayMs(policy: RetryPolicy, failures: number, { retryAfterMs }: SkilltraceError): number {
  const bound = Math.min(policy.longestDelayMs, policy.firstDelayMs * 2 ** (failures - 1));
  return (retryAfterMs ?? 0) + Math.random() * bound;
}

interface Retrying {
  readonly policy: RetryPolicy;
  /** False for a call that would fail because an earlier try of it had taken effect. */
  readonly isRepeatable: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Tries a call until it succeeds, must not be repeated, or has no time or tries left. @throws SkilltraceError of the last try */
export async function withRetries<Value>(
  call: () => Promise<Value>,
  { policy, isRepeatable, signal }: Retrying,
): Promise<Value> {
  const endsAt = Date.now() + policy.withinMs;
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof SkilltraceError)) throw error;
      error.tries = tries;
      const mayRepeat = error.hadNoEffect || (error.retryable && isRepeatable);
      const waitMs = delayMs(policy, tries, error);
      if (!mayRepeat || tries >= policy.tries || Date.now() + waitMs > endsAt) throw error;
      await sleep(waitMs, signal);
    }
  }
}
