import type { RecordableHistogram } from 'node:perf_hooks';
import type { Latency } from '../results/results.js';
import type { LoadRequest, Operation, Traffic } from './traffic.js';

/** Where requests go. */
export interface Endpoint {
  readonly host: string;
  /** Host and port, for the header Host. */
  readonly authority: string;
  readonly port: number;
  readonly isTls: boolean;
  /** Before `/api/v1`; '' without a prefix. */
  readonly basePath: string;
  readonly key: string;
}

export const createLocalEndpoint = (port: number, key: string): Endpoint => ({
  ...{ host: '127.0.0.1', authority: `127.0.0.1:${port}`, port, key },
  ...{ isTls: false, basePath: '' },
});

export interface LoadPlan {
  readonly endpoint: Endpoint;
  readonly traffic: Traffic;
  readonly seed: number;
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second; null for a closed loop. */
  readonly rate: number | null;
  /** All requests of a second are due at its start. */
  readonly isBurst?: boolean;
  /** Time for responses after the schedule ends. */
  readonly graceMs: number;
  /** Rejects at the first failed request, instead of counting it. */
  readonly failsFast: boolean;
  readonly firstAnswer: number;
}

/** One generator thread sends every n-th request. */
export interface ThreadPlan extends LoadPlan {
  readonly thread: number;
  readonly threads: number;
}

export interface LoadProgress {
  readonly responses: number;
  readonly errors: number;
}

export interface OperationCounts {
  /** Microseconds of successful requests, from the time when they were due. */
  readonly latencies: RecordableHistogram;
  /** With status 200. */
  requests: number;
  /** By status and code, for example `503 UNAVAILABLE`, or the reason if there was no response. */
  readonly errors: Map<string, number>;
  bytesSent: number;
  bytesReceived: number;
}

export interface ThreadResult {
  readonly operations: ReadonlyMap<Operation, OperationCounts>;
  /** Acknowledged answers by learner. */
  readonly acknowledged: Uint32Array;
  readonly answers: number;
  /** Requests that the service may have counted. */
  readonly unsettled: readonly LoadRequest[];
  readonly numbersUsed: number;
  /** From the first request to the last response; in an open loop at least the planned time. */
  readonly seconds: number;
  /** Share of time in which the thread, or the busiest of several, was busy. */
  readonly utilization: number;
}

export interface LoadResult extends ThreadResult {
  readonly requests: number;
  readonly errors: number;
  readonly offered: number | null;
  readonly latency: Latency;
}

export function computePercentiles(
  latencies: Pick<RecordableHistogram, 'percentile' | 'max' | 'count'>,
): Latency {
  const ms = (percentile: number): number =>
    latencies.count === 0 ? 0 : latencies.percentile(percentile) / 1000;
  const max = latencies.count === 0 ? 0 : latencies.max / 1000;
  return { p50: ms(50), p90: ms(90), p99: ms(99), p999: ms(99.9), max };
}
