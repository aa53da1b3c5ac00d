/** Reads of ClickHouse that a caller waits for: few at a time, fewer of one tenant, and none for long. */
import type { Limiter } from '../../concurrency.js';
import { callersTime } from './client.js';

/** @returns null where too many of the tenant are read already. @throws what the read throws */
export type ReadGuard = <Result>(
  tenant: string,
  read: (signal: AbortSignal) => Promise<Result>,
) => Promise<Result | null>;

/** For reads that answers can do without. */
export const createReadGuard =
  (turns: Limiter): ReadGuard =>
  <Result>(tenant: string, read: (signal: AbortSignal) => Promise<Result>) =>
    turns<Result | null>(
      tenant,
      () => read(callersTime()),
      () => null,
    );
