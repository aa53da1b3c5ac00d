/**
 * Notices a consumer that does not move although work waits, and has it begin anew.
 *
 * Time is counted in looks, not by a clock: while the whole process or machine stands still nothing is counted.
 */
import type { Logger } from '../telemetry.js';

/** Of looks without a change that are a stall: it is told within 30 s. */
const patienceMs = 20_000;

export interface ProgressWatchOptions {
  /** As it is told: "the pipeline". */
  readonly name: string;
  /** From look to look. */
  readonly lookMs?: number;
  /**
   * What waits, as a text that changes whenever something moves; null where nothing waits. Rejects in bounded time
   * where that cannot be told: then nothing can move either, which is no stall.
   */
  readonly waiting: () => Promise<string | null>;
  /** Begins anew, with new connections; takes bounded time. Called again after as long, until something moves. */
  readonly restart: () => Promise<void>;
  readonly logger: Logger;
}

export interface ProgressWatch {
  /** Something came to its end, also one that tells why it failed. */
  note(): void;
  /** Why this has to be looked at, or null. */
  stalled(): string | null;
  /** Since the start. */
  counts(): StallCounts;
  /** Resolves when no restart is under way any more. */
  close(): Promise<void>;
}

export interface StallCounts {
  readonly stalls: number;
  readonly restarts: number;
}

export function watchProgress(options: ProgressWatchOptions): ProgressWatch {
  const { name, lookMs = 1000, waiting, restart, logger } = options;
  const patience = patienceMs / lookMs;
  const counts = { stalls: 0, restarts: 0 };
  let still = 0;
  let before: string | null = null;
  let looking: Promise<void> | null = null;
  let closed = false;

  async function look(): Promise<void> {
    const now = await waiting().catch(() => null);
    if (now === null || now !== before) still = 0;
    else still += 1;
    before = now;
    if (!closed && still > 0 && still % patience === 0) await beginAnew();
  }

  async function beginAnew(): Promise<void> {
    counts.stalls += still === patience ? 1 : 0;
    counts.restarts += 1;
    logger.error({ seconds: seconds() }, `${name} does not move with work waiting: it begins anew`);
    await restart().catch((error: unknown) => logger.error({ err: error }, `${name} did not begin anew`));
  }

  const seconds = (): number => Math.round((still * lookMs) / 1000);
  const timer = setInterval(() => {
    looking ??= look().finally(() => {
      looking = null;
    });
  }, lookMs);
  return {
    note: () => {
      still = 0;
    },
    stalled: () => (still < patience ? null : `${name} has not moved for ${seconds()} s with work waiting`),
    counts: () => counts,
    close: async () => {
      closed = true;
      clearInterval(timer);
      await looking;
    },
  };
}
