import type { ForecastOrder, ForecastReply, ForecastTask } from '../contracts/tasks.js';
import { unavailable } from '../errors.js';
import type { Forecaster } from '../services/ports.js';

/** What a task that was served tells. */
export type ForecastsMade = Extract<ForecastReply, { readonly data: unknown }>;

export interface ForecastBatcherOptions {
  /** Tasks that may be away at the same time. */
  readonly tasks: number;
  /** Most learners in one task; an order of more is a task of its own. */
  readonly maxLearners: number;
  /** Most orders that may wait for a task. */
  readonly maxWaiting: number;
  /** @throws ApiError UNAVAILABLE, for all orders of the task */
  readonly run: (task: ForecastTask) => Promise<ForecastsMade>;
}

interface Waiting {
  readonly order: ForecastOrder;
  readonly resolve: (data: readonly (string | null)[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers orders into tasks, first come, first served: while as many tasks as may be are away the next one grows, so
 * the tasks are as large as the load is heavy, and nobody waits for a timer.
 */
export function createForecastBatcher(options: ForecastBatcherOptions): Pick<Forecaster, 'forecast'> {
  const waiting: Waiting[] = [];
  let away = 0;

  async function drain(): Promise<void> {
    while (waiting.length > 0) await runBatch(options, takeBatch(waiting, options.maxLearners));
    away -= 1;
  }

  function enqueue(one: Waiting): void {
    waiting.push(one);
    if (away >= options.tasks) return;
    away += 1;
    // Not at once: what the sockets deliver in this turn of the event loop shares the task.
    setImmediate(drain);
  }

  return {
    forecast: async (order) => {
      if (waiting.length >= options.maxWaiting) throw unavailable('Too many forecasts wait; try again later');
      return new Promise((resolve, reject) => enqueue({ order, resolve, reject }));
    },
  };
}

/** At least one order, and no more than there is room for. */
function takeBatch(waiting: Waiting[], maxLearners: number): Waiting[] {
  let [orders, learners] = [0, 0];
  for (const { order } of waiting) {
    learners += order.userIds.length;
    if (orders > 0 && learners > maxLearners) break;
    orders += 1;
  }
  return waiting.splice(0, orders);
}

async function runBatch({ run }: ForecastBatcherOptions, batch: readonly Waiting[]): Promise<void> {
  try {
    const orders = JSON.stringify(batch.map(({ order }) => order));
    tell(batch, await run({ kind: 'predictions', orders }));
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

/** A learner's problem is the problem of the order that names the learner, and of no other. */
function tell(batch: readonly Waiting[], { data, problems }: ForecastsMade): void {
  let from = 0;
  for (const { order, resolve, reject } of batch) {
    const to = from + order.userIds.length;
    const problem = problems.find(({ place }) => place >= from && place < to);
    if (problem === undefined) resolve(data.slice(from, to));
    else reject(problem.passing ? unavailable(problem.reason) : new Error(problem.reason));
    from = to;
  }
}
