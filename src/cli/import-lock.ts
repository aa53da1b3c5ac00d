import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Closers, StartError } from '../lifecycle.js';
import type { ImportStore } from '../services/import/ports.js';
import type { Logger } from '../telemetry.js';

export interface ImportLock {
  /** @throws StartError if another process has it now */
  check(): void;
  /** Takes it once more. @throws StartError if another process has it, ApiError while Redis is away */
  confirm(): Promise<void>;
}

const renewMs = 2000;
const pollMs = 250;

const taken = (): StartError => new StartError('This file is being imported by another process right now');

/**
 * Keeps two processes from importing one content at once. A holder that died loses the lock within 10 s, for which
 * this waits; one that lives renews it, and that shows in the time left growing.
 *
 * Two imports at once would still count nothing twice (feeder.ts); the lock is there because the one that ends
 * first forgets the marks.
 *
 * @throws StartError if a living process has it
 */
export async function takeImportLock(
  store: ImportStore,
  content: string,
  logger: Logger,
  closers: Closers,
): Promise<ImportLock> {
  const holder = randomUUID();
  let least = Number.POSITIVE_INFINITY;
  for (let left = await store.lock(content, holder); left > 0; left = await store.lock(content, holder)) {
    if (left > least || closers.closing) throw taken();
    least = left;
    await sleep(pollMs);
  }
  let lost = false;
  const renew = async (): Promise<void> => {
    lost ||= (await store.lock(content, holder)) > 0;
  };
  const check = (): void => {
    if (lost) throw taken();
  };
  const timer = setInterval(() => {
    renew().catch((error: unknown) => logger.debug({ err: error }, 'the lock is renewed later'));
  }, renewMs);
  closers.add('import lock', async () => {
    clearInterval(timer);
    await store
      .unlock(content, holder)
      .catch((error: unknown) => logger.debug({ err: error }, 'the lock ends by itself'));
  });
  return { check, confirm: () => renew().then(check) };
}
