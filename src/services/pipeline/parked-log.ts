import type { Logger } from '../../telemetry.js';

/** What is said of a row that was put aside: where it was and why, nothing of what it says. */
export interface ParkedRow {
  /** Of the outbox: its partition. */
  readonly partition?: number;
  /** Of the journal: key of the stream that it was in, and what kind of fact it is. */
  readonly source?: string;
  readonly kind?: string;
  readonly id: string;
  /** Key of the stream that has it now. */
  readonly parked?: string;
  readonly reason: string;
}

export interface ParkedLog {
  /** @param rows how many were put aside together; the first of them is told of */
  parked(row: ParkedRow, rows: number): void;
}

/** When a whole block is refused, thousands are parked for one reason: one line a second tells it, with their number. */
const everyMs = 1000;

/** @param now monotonic clock in milliseconds */
export function createParkedLog(logger: Logger, now: () => number): ParkedLog {
  let nextAt = 0;
  let unlogged = 0;
  return {
    parked: (row, rows) => {
      if (now() < nextAt) {
        unlogged += rows;
        return;
      }
      logger.error(
        { ...row, rows, alike: unlogged },
        'a row was put aside: ClickHouse refuses its content, or this version cannot read it',
      );
      nextAt = now() + everyMs;
      unlogged = 0;
    },
  };
}
