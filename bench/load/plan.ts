/** Input and output of the load generator. */
import type { Latency } from '../results.js';

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second of an open loop; null: closed loop. */
  readonly rate: number | null;
  /** A 503 is counted instead of ending the load. */
  readonly mayRefuse?: boolean;
  readonly pool: string;
  /** Number of the first answer; each has its own. */
  readonly firstAnswer: number;
}

export interface LoadResult {
  readonly requests: number;
  /** Of requests with status 200. */
  readonly answers: number;
  readonly refused: number;
  readonly offered: number | null;
  /** Numbers of answers that may have been used, from `firstAnswer` on. */
  readonly numbersUsed: number;
  /** From the first request to the last answer. */
  readonly seconds: number;
  /** Milliseconds since requests were due; null for a closed loop. */
  readonly latency: Percentiles | null;
}

export type Percentiles = Pick<Latency, 'p50' | 'p90' | 'p99' | 'p999' | 'max'>;
