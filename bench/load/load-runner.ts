import { createHistogram } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { type Closers, StartError } from '../../src/lifecycle.js';
import { computeSum, groupBy, indices } from '../../src/lists.js';
import { resolveBenchPath } from '../targets/targets.js';
import {
  computePercentiles,
  type LoadPlan,
  type LoadProgress,
  type LoadResult,
  type OperationCounts,
  type ThreadPlan,
  type ThreadResult,
} from './plan.js';

export type LoadRunner = ReturnType<typeof createLoadRunner>;

/** Sends load from threads of this process. */
export function createLoadRunner(closers: Closers) {
  /** @throws StartError if the server cannot be reached, or with `failsFast` if a request fails */
  return async (
    plan: LoadPlan,
    threads = 1,
    onProgress: (progress: LoadProgress) => void = () => undefined,
  ): Promise<LoadResult> => {
    const shares = indices(threads).map((thread) => ({
      ...plan,
      thread,
      threads,
      connections: shareOf(plan.connections, thread, threads),
    }));
    const latest: LoadProgress[] = [];
    const results = shares.map((share) =>
      runThread(share, closers, (progress) => {
        latest[share.thread] = progress;
        onProgress({
          responses: computeSum(latest.map(({ responses }) => responses)),
          errors: computeSum(latest.map(({ errors }) => errors)),
        });
      }),
    );
    return mergeResults(await Promise.all(results), plan);
  };
}

const shareOf = (total: number, thread: number, threads: number): number =>
  Math.max(1, Math.floor((total + thread) / threads));

function runThread(
  plan: ThreadPlan,
  closers: Closers,
  onProgress: (progress: LoadProgress) => void,
): Promise<ThreadResult> {
  const worker = new Worker(resolveBenchPath('./load/generator.js'), { workerData: plan });
  closers.add('load generator', () => worker.terminate());
  return new Promise((resolve, reject) => {
    worker.on('message', (message: LoadProgress | ThreadResult) =>
      'operations' in message ? resolve(message) : onProgress(message),
    );
    worker.on('error', (error) => reject(new StartError(error.message, { cause: error })));
    worker.on('exit', () => reject(new StartError('the load generator was stopped')));
  });
}

export function mergeResults(results: readonly ThreadResult[], { rate }: Pick<LoadPlan, 'rate'>): LoadResult {
  const byOperation = groupBy(
    results.flatMap((result) => [...result.operations]),
    ([operation]) => operation,
  );
  const operations = new Map(
    Array.from(byOperation, ([operation, parts]) => [
      operation,
      mergeCounts(parts.map(([, counts]) => counts)),
    ]),
  );
  const all = mergeCounts([...operations.values()]);
  const acknowledged = new Uint32Array(results[0]?.acknowledged.length ?? 0);
  for (const result of results)
    result.acknowledged.forEach((count, learner) => {
      (acknowledged[learner] as number) += count;
    });
  return {
    operations,
    acknowledged,
    requests: all.requests,
    errors: computeSum([...all.errors.values()]),
    answers: computeSum(results.map(({ answers }) => answers)),
    unsettled: results.flatMap(({ unsettled }) => unsettled),
    numbersUsed: Math.max(...results.map(({ numbersUsed }) => numbersUsed)),
    seconds: Math.max(...results.map(({ seconds }) => seconds)),
    utilization: Math.max(...results.map(({ utilization }) => utilization)),
    offered: rate,
    latency: computePercentiles(all.latencies),
  };
}

export function mergeCounts(parts: readonly OperationCounts[]): OperationCounts {
  const errors = new Map<string, number>();
  for (const [reason, count] of parts.flatMap((part) => [...part.errors]))
    errors.set(reason, (errors.get(reason) ?? 0) + count);
  const latencies = createHistogram();
  for (const part of parts) if (part.latencies.count > 0) latencies.add(part.latencies);
  return {
    latencies,
    errors,
    requests: computeSum(parts.map(({ requests }) => requests)),
    bytesSent: computeSum(parts.map(({ bytesSent }) => bytesSent)),
    bytesReceived: computeSum(parts.map(({ bytesReceived }) => bytesReceived)),
  };
}
