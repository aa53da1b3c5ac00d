import { computeSum } from '../../src/lists.js';
import { mergeCounts } from '../load/load-runner.js';
import { computePercentiles, type LoadResult, type OperationCounts } from '../load/plan.js';
import type { Figures } from './objectives.js';
import type { LoadSettings, ScenarioName } from './options.js';
import type { Verification } from './verify.js';

/** Percentiles cover successful requests, from the time when they were due. */
export interface OperationSummary {
  /** With errors. */
  readonly requests: number;
  /** Requests without a response with status 200. */
  readonly errors: number;
  /** Successful requests per second. */
  readonly rate: number;
  readonly p50_ms: number;
  readonly p90_ms: number;
  readonly p99_ms: number;
  readonly p999_ms: number;
  readonly max_ms: number;
  /** By status and code, or reason. */
  readonly error_counts: Readonly<Record<string, number>>;
  readonly bytes_sent: number;
  readonly bytes_received: number;
}

export interface CapacityStep {
  /** Requests per second. */
  readonly offered: number;
  readonly summary: OperationSummary;
  readonly isMet: boolean;
}

export interface DeploymentResults {
  readonly format: 1;
  /** ISO time. */
  readonly started_at: string;
  readonly url: string;
  /** Prefix of the learners. */
  readonly run: string;
  readonly settings: LoadSettings;
  /** By scenario, and `scenario_call` for scenarios of several calls. */
  readonly operations: Readonly<Record<string, OperationSummary>>;
  /** Requests per second, and the highest p99 of the three confirming steps. */
  readonly capacity: { readonly rate: number; readonly p99_ms: number } | null;
  /** Of the search, in the order of measurement. */
  readonly capacity_steps: readonly CapacityStep[];
  readonly verified: Verification | null;
  /** Includes learners of earlier runs; null without --clean-up, and before its end. */
  readonly cleaned_learners: number | null;
  readonly warnings: readonly string[];
  /** Missed limits and differences. */
  readonly failures: readonly string[];
}

export function summarizeScenario(name: ScenarioName, load: LoadResult): Record<string, OperationSummary> {
  const all = [...load.operations];
  const parts =
    all.length < 2 ? [] : all.map(([operation, counts]) => [`${name}_${operation}`, counts] as const);
  const named = [[name, mergeCounts(all.map(([, counts]) => counts))] as const, ...parts];
  return Object.fromEntries(named.map(([key, counts]) => [key, summarize(counts, load.seconds)]));
}

function summarize(counts: OperationCounts, seconds: number): OperationSummary {
  const { latencies, requests, errors, bytesSent, bytesReceived } = counts;
  const failed = computeSum([...errors.values()]);
  const { p50, p90, p99, p999, max } = computePercentiles(latencies);
  return {
    ...{ requests: requests + failed, errors: failed, rate: seconds === 0 ? 0 : requests / seconds },
    ...{ p50_ms: p50, p90_ms: p90, p99_ms: p99, p999_ms: p999, max_ms: max },
    error_counts: Object.fromEntries(errors),
    ...{ bytes_sent: bytesSent, bytes_received: bytesReceived },
  };
}

export const computeFigures = (one: OperationSummary): Figures => ({
  ...{ p50: one.p50_ms, p90: one.p90_ms, p99: one.p99_ms, 'p99.9': one.p999_ms, max: one.max_ms },
  errors: one.requests === 0 ? 100 : (100 * one.errors) / one.requests,
  rate: one.rate,
});
