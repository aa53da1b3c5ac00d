import type { Piscina } from 'piscina';
import { programPath } from '../programs.js';
import type { Logger } from '../telemetry.js';

/** A thread that cannot be started (no descriptors, no memory) would end the process: its tasks end by their limit. */
export const tellThreadFailures = (pool: Piscina, logger: Logger): Piscina =>
  pool.on('error', (error) => logger.error({ err: error }, 'a worker thread cannot be started'));

/** How Piscina starts threads of ours. */
export const workerEntry = (name: 'track' | 'forecast' | 'fit' | 'rebuild' | 'takeBack') => ({
  filename: programPath('entry.cjs'),
  name,
});
