import { createSlots } from '../concurrency.js';
import type { ForecastOrder, ForecastReply, ForecastTask, WhatIfTask } from '../contracts/tasks.js';
import { ApiError, unavailable } from '../errors.js';
import { createFairQueue, type FairQueue, type Queued } from '../fair-queue.js';

/**
 * JSON of a prediction result; null for a learner without answers; an Error for one whose forecast failed by a defect,
 * which no other learner's has to do with.
 */
export type ForecastResult = string | null | Error;

/** Throws once nobody waits for the answer any more: work that stood in a queue is not begun then. */
export type StillWanted = () => void;

/** Computes forecasts off the front end's thread. @throws ApiError UNAVAILABLE, and what `stillWanted` throws */
export interface Forecaster {
  /** What became of each learner, in their order. */
  forecast(order: ForecastOrder, stillWanted: StillWanted): Promise<readonly ForecastResult[]>;
  /** JSON of the result, null for a learner without answers. @throws ApiError SKILL_NOT_FOUND */
  whatIf(task: Omit<WhatIfTask, 'kind'>, stillWanted: StillWanted): Promise<string | null>;
}

/** What a task that was served tells. */
export type ForecastsMade = Extract<ForecastReply, { readonly data: unknown }>;

export interface ForecastBatcherOptions {
  /** Tasks that may be away at the same time, and those of one tenant among them. */
  readonly tasks: number;
  readonly tasksOfTenant: number;
  /** Most learners in one task; an order of more is a task of its own. */
  readonly maxLearners: number;
  /** Most orders of one tenant that may wait for a task. */
  readonly maxWaiting: number;
  /** @throws ApiError UNAVAILABLE, for all orders of the task */
  readonly run: (task: ForecastTask) => Promise<ForecastsMade>;
}

/** One order's forecasts, by learner. */
type Forecasts = readonly ForecastResult[];

export interface ForecastBatcher extends Pick<Forecaster, 'forecast'> {
  readonly stop: () => void;
}

interface Waiting extends Queued {
  readonly order: ForecastOrder;
  readonly stillWanted: StillWanted;
  readonly resolve: (forecasts: Forecasts) => void;
  readonly reject: (error: unknown) => void;
}

/** Gathers orders into tasks; tenants take turns. */
export function createForecastBatcher(options: ForecastBatcherOptions): ForecastBatcher {
  const queue = createFairQueue<Waiting>();
  const slots = createSlots(options.tasks, options.tasksOfTenant);
  // Made once: with a stack of its own for each, refusing cost more than accepting.
  const refusal = unavailable('Too many forecasts wait; try again later');
  let stopped = false;
  let gathering = false;

  const sendAll = (): void => {
    gathering = false;
    const mayGo = ({ tenant }: Waiting): boolean => slots.isFree(tenant);
    for (let first = queue.take(mayGo); first !== undefined; first = queue.take(mayGo)) void send(first);
  };
  const send = async (first: Waiting): Promise<void> => {
    const task = takeTask(queue, first, options.maxLearners).filter(isWanted);
    if (task.length === 0) return;
    slots.take(first.tenant);
    await settleAll(options, task);
    slots.release(first.tenant);
    sendAll();
  };

  return {
    forecast: (order, stillWanted) =>
      new Promise((resolve, reject) => {
        const { tenant, userIds } = order;
        if (stopped) return reject(closing());
        if (queue.of(tenant).items.length >= options.maxWaiting) return reject(refusal);
        queue.add({ tenant, weight: userIds.length, order, stillWanted, resolve, reject });
        // Not at once: what the sockets deliver in this turn of the event loop shares a task.
        if (!gathering) setImmediate(sendAll);
        gathering = true;
      }),
    stop: () => {
      stopped = true;
      for (const { reject } of queue.takeAll(() => true)) reject(closing());
    },
  };
}

const closing = () => unavailable('The service is stopping; try again later');

/** A tenant with more in the queue than fits gets tasks of its own: others would wait for all that is in them. */
function takeTask(queue: FairQueue<Waiting>, first: Waiting, maxLearners: number): Waiting[] {
  const isCrowd = (tenant: string): boolean => queue.of(tenant).items.length >= maxLearners;
  const alone = isCrowd(first.tenant);
  const task = [first];
  let room = maxLearners - first.weight;
  const joins = ({ tenant, weight }: Waiting): boolean =>
    weight <= room && (alone ? tenant === first.tenant : !isCrowd(tenant));
  for (let next = queue.take(joins); next !== undefined; next = queue.take(joins)) {
    task.push(next);
    room -= next.weight;
  }
  return task;
}

/** Tells each order its forecasts; where the work fails, all of them. */
async function settleAll({ run }: ForecastBatcherOptions, task: readonly Waiting[]): Promise<void> {
  const orders = task.map(({ order }) => order);
  try {
    const made = await run({ kind: 'predictions', orders: JSON.stringify(orders) });
    const results = told(orders, made);
    task.forEach(({ resolve, reject }, i) => {
      const result = results[i] as Forecasts | Error;
      if (result instanceof Error) reject(result);
      else resolve(result);
    });
  } catch (error) {
    for (const { reject } of task) reject(error);
  }
}

/** Who is gone is told so, and costs nothing more. */
function isWanted({ stillWanted, reject }: Waiting): boolean {
  try {
    stillWanted();
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}

/** A defect is its learner's alone; what passes concerns the tenant, and so the orders that name the learner. */
function told(orders: readonly ForecastOrder[], { data, problems }: ForecastsMade): (Forecasts | Error)[] {
  const results: ForecastResult[] = [...data];
  for (const { place, reason, passing } of problems)
    results[place] = passing ? unavailable(reason) : new Error(reason);
  let from = 0;
  return orders.map(({ userIds }) => {
    const own = results.slice(from, from + userIds.length);
    from += userIds.length;
    return own.find((result) => result instanceof ApiError) ?? own;
  });
}
