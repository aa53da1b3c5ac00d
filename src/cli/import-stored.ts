import { setTimeout as sleep } from 'node:timers/promises';
import type { Outbox } from '../store/outbox/outbox.js';
import type { Logger } from '../telemetry.js';

const pollMs = 200;

/**
 * Waits until everything that is committed now has left the outbox for ClickHouse; what others commit later is not
 * waited for. Outbox ids begin with Redis' time, so that is when no partition's oldest row is as old as now.
 *
 * @param patienceMs how long nothing may move before the wait is given up
 * @returns whether everything is stored
 */
export async function untilStored(
  outbox: Outbox,
  partitions: number,
  patienceMs: number,
  stopped: () => boolean,
  logger: Logger,
): Promise<boolean> {
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  let now: number | null = null;
  const oldRows = async (): Promise<string> => {
    now ??= (await outbox.epoch()).ms;
    const until = now;
    const heads = (await outbox.backlog(all)).flatMap(({ head }) => (head === null ? [] : [head]));
    return heads.filter((head) => Number.parseInt(head, 10) <= until).join();
  };
  let seen = 'not asked yet';
  for (let movedAt = performance.now(); !stopped() && performance.now() - movedAt <= patienceMs; ) {
    const left = await oldRows().catch((error: unknown) => {
      logger.debug({ err: error }, 'the outbox cannot be asked');
      return seen;
    });
    if (left === '') return true;
    if (left !== seen) movedAt = performance.now();
    seen = left;
    await sleep(pollMs);
  }
  return false;
}
