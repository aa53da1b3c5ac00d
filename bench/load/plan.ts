/** What a load generator is told, and what it tells. */
import type { Latency } from '../results.js';

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second, offered whatever comes back; null: the next one when the one before was answered. */
  readonly rate: number | null;
  /** Not to be driven by an external generator. */
  readonly ownGenerator?: boolean;
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
  /** Answers of requests that were under way when the generator stopped: counted by the server or not. */
  readonly unanswered: number;
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
