import { Piscina } from 'piscina';
import { programPath } from '../programs.js';
import type { Logger } from '../telemetry.js';

/** How Piscina starts threads of ours. */
export const workerEntry = (name: 'track' | 'forecast' | 'fit' | 'rebuild' | 'takeBack') => ({
  filename: programPath('entry.cjs'),
  name,
});

/**
 * Starts threads of ours.
 *
 * Atomics are off: in Piscina's default mode an idle worker sleeps in Atomics.wait, and the Redis connection that
 * lives in it is not served meanwhile, so replies, time-outs and reconnects would wait for the next task.
 */
export const startPool = (
  name: Parameters<typeof workerEntry>[0],
  options: NonNullable<ConstructorParameters<typeof Piscina>[0]>,
): Piscina => new Piscina({ ...workerEntry(name), atomics: 'disabled', recordTiming: false, ...options });

/** A thread that cannot be started (no descriptors, no memory) would end the process: its tasks end by their limit. */
export const tellThreadFailures = (pool: Piscina, logger: Logger): Piscina =>
  pool.on('error', (error) => logger.error({ err: error }, 'a worker thread cannot be started'));
