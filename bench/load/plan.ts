import type { Latency } from '../results/results.js';

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second; null for a closed loop. */
  readonly rate: number | null;
  /** Counts responses with 503 instead of failing. */
  readonly mayRefuse?: boolean;
  readonly pool: string;
  readonly firstAnswer: number;
}

export interface LoadResult {
  readonly requests: number;
  /** In requests with status 200. */
  readonly answers: number;
  readonly rejected: number;
  readonly offered: number | null;
  /** Answer numbers used, from `firstAnswer` on. */
  readonly numbersUsed: number;
  /** From the first request to the last response. */
  readonly seconds: number;
  readonly latency: Percentiles;
}

export type Percentiles = Latency;
