import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '../lifecycle.js';
import type { RedisClient } from '../store/redis/client.js';
import { releaseLock, takeLock } from '../store/redis/lock.js';
import type { CommandContext } from './command.js';

export type ProcessLock = Awaited<ReturnType<typeof takeProcessLock>>;

const renewMs = 2000;
const pollMs = 250;

/**
 * Keeps two processes from doing the same at once. A holder that died loses the lock within 10 s, for which this
 * waits; one that lives renews it, and that shows in the time left growing.
 *
 * @param message for the user where a living process has it
 * @throws StartError if a living process has it, ApiError UNAVAILABLE
 */
export async function takeProcessLock(
  redis: RedisClient,
  key: string,
  message: string,
  { logger, closers }: Pick<CommandContext, 'logger' | 'closers'>,
) {
  const taken = (): StartError => new StartError(message);
  const holder = randomUUID();
  const take = (): Promise<number> => takeLock(redis, key, holder);
  let least = Number.POSITIVE_INFINITY;
  for (let left = await take(); left > 0; left = await take()) {
    if (left > least || closers.closing) throw taken();
    least = left;
    await sleep(pollMs);
  }
  let lost = false;
  const renew = async (): Promise<void> => {
    lost ||= (await take()) > 0;
  };
  /** @throws StartError if another process has it now */
  const check = (): void => {
    if (lost) throw taken();
  };
  /** Takes it once more. @throws StartError if another process has it, ApiError while Redis is unavailable */
  const confirm = (): Promise<void> => renew().then(check);
  const later = (text: string) => (error: unknown) => logger.debug({ err: error }, text);
  const timer = setInterval(() => void renew().catch(later('the lock is renewed later')), renewMs);
  closers.add('lock', async () => {
    clearInterval(timer);
    await releaseLock(redis, key, holder).catch(later('the lock ends by itself'));
  });
  return { check, confirm };
}
