import { sleep } from '../../../../client/deadline.js';
import { SkilltraceError } from '../../../../client/errors.js';
import type { LiveFigures } from '../../../../client/types.js';
import type { Api } from '../../base/session.js';

const firstWaitMs = 1_000;
const longestWaitMs = 30_000;

interface Follower {
  readonly signal: AbortSignal;
  readonly onFigures: (figures: LiveFigures) => void;
  /** @param waitMs until the next attempt; null without retry */
  readonly onLost: (error: unknown, waitMs: number | null) => void;
}

/** Reopens a lost stream with exponential backoff. */
export async function followLive(api: Api, { signal, onFigures, onLost }: Follower): Promise<void> {
  let boundMs = firstWaitMs;
  while (!signal.aborted) {
    let error: unknown = new SkilltraceError('NETWORK_ERROR', 'The service ended the stream');
    try {
      for await (const figures of api.live({ signal })) {
        boundMs = firstWaitMs;
        onFigures(figures);
      }
    } catch (thrown) {
      error = thrown;
    }
    if (signal.aborted) return;
    if (!(error instanceof SkilltraceError && error.retryable)) return onLost(error, null);
    // Jitter spreads the reconnects of many pages.
    const waitMs = boundMs * (0.5 + Math.random() / 2);
    onLost(error, waitMs);
    // Rejects only on the signal, which the loop checks.
    await sleep(waitMs, signal).catch(() => undefined);
    boundMs = Math.min(longestWaitMs, 2 * boundMs);
  }
}
