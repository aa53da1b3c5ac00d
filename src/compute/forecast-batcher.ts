import type { ForecastOrder, ForecastReply, ForecastTask } from '../contracts/tasks.js';
import { ApiError, unavailable } from '../errors.js';
import type { Forecaster, ToldForecast } from '../services/ports.js';
import { type Batcher, createBatcher } from './batcher.js';

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

/** One order's forecasts, by learner. */
type Forecasts = readonly ToldForecast[];

export interface ForecastBatcher extends Pick<Forecaster, 'forecast'> {
  readonly stop: () => void;
}

/** Gathers orders into tasks. */
export function createForecastBatcher(options: ForecastBatcherOptions): ForecastBatcher {
  const batcher: Batcher<ForecastOrder, Forecasts> = createBatcher({
    lanes: 1,
    away: options.tasks,
    together: () => true,
    tenantOf: ({ tenant }) => tenant,
    weightOf: ({ userIds }) => userIds.length,
    maxBatch: { items: Number.POSITIVE_INFINITY, weight: options.maxLearners },
    maxWaiting: { items: options.maxWaiting, weight: Number.POSITIVE_INFINITY },
    patience: { ms: Number.POSITIVE_INFINITY, least: { items: 0, weight: 0 } },
    refusal: 'Too many forecasts wait; try again later',
    run: async (orders) =>
      told(orders, await options.run({ kind: 'predictions', orders: JSON.stringify(orders) })),
  });
  return { forecast: (order) => batcher.submit(0, order), stop: batcher.stop };
}

/** A defect is its learner's alone; what passes concerns the tenant, and so the orders that name the learner. */
function told(orders: readonly ForecastOrder[], { data, problems }: ForecastsMade): (Forecasts | Error)[] {
  const results: ToldForecast[] = [...data];
  for (const { place, reason, passing } of problems)
    results[place] = passing ? unavailable(reason) : new Error(reason);
  let from = 0;
  return orders.map(({ userIds }) => {
    const own = results.slice(from, from + userIds.length);
    from += userIds.length;
    return own.find((result) => result instanceof ApiError) ?? own;
  });
}
