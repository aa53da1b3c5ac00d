import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Closers, StartError } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';

export interface ProcessLock {
  /** @throws StartError if another process has it now */
  check(): void;
  /** Takes it once more. @throws StartError if another process has it, ApiError while Redis is away */
  confirm(): Promise<void>;
}

const renewMs = 2000;
const pollMs = 250;

/** @throws ApiError UNAVAILABLE */
interface Lock {
  /** @returns 0 when it is the holder's now, else the milliseconds for which somebody else has it */
  take(holder: string): Promise<number>;
  release(holder: string): Promise<void>;
}

/**
 * Keeps two processes from doing the same at once. A holder that died loses the lock within 10 s, for which this
 * waits; one that lives renews it, and that shows in the time left growing.
 *
 * @param message what is told where a living process has it
 * @throws StartError if a living process has it
 */
export async function takeProcessLock(
  lock: Lock,
  message: string,
  logger: Logger,
  closers: Closers,
): Promise<ProcessLock> {
  const taken = (): StartError => new StartError(message);
  const holder = randomUUID();
  let least = Number.POSITIVE_INFINITY;
  for (let left = await lock.take(holder); left > 0; left = await lock.take(holder)) {
    if (left > least || closers.closing) throw taken();
    least = left;
    await sleep(pollMs);
  }
  let lost = false;
  const renew = async (): Promise<void> => {
    lost ||= (await lock.take(holder)) > 0;
  };
  const check = (): void => {
    if (lost) throw taken();
  };
  const timer = setInterval(() => {
    renew().catch((error: unknown) => logger.debug({ err: error }, 'the lock is renewed later'));
  }, renewMs);
  closers.add('lock', async () => {
    clearInterval(timer);
    await lock
      .release(holder)
      .catch((error: unknown) => logger.debug({ err: error }, 'the lock ends by itself'));
  });
  return { check, confirm: () => renew().then(check) };
}
