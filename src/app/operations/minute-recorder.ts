/** Writes the figures of this process and the last use of its keys to Redis, at the end of each minute. */
import type { Closers } from '../../lifecycle.js';
import type { Logger } from '../../logger.js';
import type { KeyTraffic } from '../../services/operations/key-traffic.js';
import { buildMinute } from '../../services/operations/live-history.js';
import { createSnapshot } from '../../services/operations/live-metrics.js';
import type { KeyStore } from '../../store/access/api-keys.js';
import type { MinuteStore } from '../../store/operations/minute-store.js';
import type { CollectedMetrics } from './metrics.js';

interface MinuteRecorder {
  readonly collect: () => Promise<CollectedMetrics>;
  readonly keyTraffic: Pick<KeyTraffic, 'take'>;
  readonly minutes: Pick<MinuteStore, 'append'>;
  readonly keys: Pick<KeyStore, 'recordUses'>;
  readonly logger: Logger;
  readonly closers: Closers;
}

const minuteMs = 60_000;
const currentMinute = (): number => Math.floor(Date.now() / minuteMs);
/** Timers may fire a few milliseconds early. */
const timerToleranceMs = 50;

/** A failed write loses the minute, and is logged. The last part is written at shutdown. */
export async function startMinuteRecorder(recorder: MinuteRecorder): Promise<void> {
  const { collect, keyTraffic, minutes, keys, logger, closers } = recorder;
  const takeSnapshot = async () => createSnapshot([await collect()], performance.now());
  let before = await takeSnapshot();

  async function record(minute: number): Promise<void> {
    const [now, used] = [await takeSnapshot(), keyTraffic.take()];
    const figures = buildMinute(minute, before, now, used);
    before = now;
    const writes = [minutes.append(figures), keys.recordUses([...used.keys()], Date.now())];
    const results = await Promise.allSettled(writes);
    const err = results.find((result) => result.status === 'rejected')?.reason;
    if (err !== undefined)
      logger.warn({ err }, 'cannot store the figures of a minute; they are missing in the history');
  }

  const schedule = (): NodeJS.Timeout =>
    setTimeout(recordNext, minuteMs - (Date.now() % minuteMs) + timerToleranceMs);
  let timer = schedule();
  function recordNext(): void {
    timer = schedule();
    void record(currentMinute() - 1);
  }
  closers.add('minute figures', () => {
    clearTimeout(timer);
    return record(currentMinute());
  });
}
