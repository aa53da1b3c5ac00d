import { sleep } from '../../../../client/deadline.js';
import { SkilltraceError } from '../../../../client/errors.js';
import type { LiveFigures } from '../../../../client/types.js';
import type { Api } from '../../base/session.js';

const initialWaitMs = 1_000;
const maxWaitMs = 30_000;

interface LiveListener {
  readonly signal: AbortSignal;
  readonly onFigures: (figures: LiveFigures) => void;
  /** @param waitMs until the next attempt; null without retry */
  readonly onDisconnect: (error: unknown, waitMs: number | null) => void;
}

/** Reopens a lost stream with exponential backoff. */
export async function streamLiveFigures(
  api: Api,
  { signal, onFigures, onDisconnect }: LiveListener,
): Promise<void> {
  let backoffMs = initialWaitMs;
  while (!signal.aborted) {
    let error: unknown = new SkilltraceError('NETWORK_ERROR', 'The service closed the stream');
    try {
      for await (const figures of api.live({ signal })) {
        backoffMs = initialWaitMs;
        onFigures(figures);
      }
    } catch (thrown) {
      error = thrown;
    }
    if (signal.aborted) return;
    if (!(error instanceof SkilltraceError && error.retryable)) return onDisconnect(error, null);
    // Jitter spreads the reconnects of many pages.
    const waitMs = backoffMs * (0.5 + Math.random() / 2);
    onDisconnect(error, waitMs);
    // Rejects only on the signal, which the loop checks.
    await sleep(waitMs, signal).catch(() => undefined);
    backoffMs = Math.min(maxWaitMs, 2 * backoffMs);
  }
}
