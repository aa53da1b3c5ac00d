/** Orders of forecasts that wait for a worker thread share tasks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createForecastBatcher, type ForecastBatcherOptions } from '../../src/compute/forecast-batcher.js';
import type { ForecastOrder, ForecastTask } from '../../src/contracts/forecasts/forecast-tasks.js';
import { ApiError, unavailable } from '../../src/errors.js';

const orderOf = (userIds: string, tenant = 'default'): ForecastOrder => ({
  ...{ tenant, userIds: userIds.split('+'), days: 30, level: 0.8, locale: 'en' },
});

type TaskReply = Awaited<ReturnType<ForecastBatcherOptions['run']>>;

/** A batcher with tasks that wait for `finish`. The default result of each learner is the learner's id. */
function startBatcher(change: Partial<ForecastBatcherOptions> = {}) {
  const tasks: { orders: ForecastOrder[]; finish: (reply?: TaskReply | Error) => void }[] = [];
  const run = (task: ForecastTask): Promise<TaskReply> =>
    new Promise((resolve, reject) => {
      const orders: ForecastOrder[] = JSON.parse(task.orders);
      const results = orders.flatMap(({ userIds }) => userIds);
      const finish = (reply: TaskReply | Error = { results }): void =>
        reply instanceof Error ? reject(reply) : resolve(reply);
      tasks.push({ orders, finish });
    });
  const limits = { maxTasks: 1, maxTenantTasks: 1, maxLearners: 3, maxTenantOrders: 4 };
  const batcher = createForecastBatcher({ ...limits, run, ...change });
  return {
    forecast: (userIds: string, tenant?: string) =>
      batcher.forecast(orderOf(userIds, tenant), () => undefined),
    batcher,
    learners: () => tasks.map(({ orders }) => orders.map(({ userIds }) => userIds.join('+'))),
    orders: (task: number) => tasks[task]?.orders,
    /** Finishes a task and lets the batcher start the next one. */
    async finish(task: number, reply?: TaskReply | Error): Promise<void> {
      tasks[task]?.finish(reply);
      await nextTurn();
    },
  };
}

test('The forecast batcher runs orders of one turn in one task and returns the results of each order', async () => {
  const { forecast, batcher, learners, orders, finish } = startBatcher({ maxLearners: 9 });
  const other = { ...orderOf('b+c', 'other'), days: 90 };
  const results = [forecast('a'), batcher.forecast(other, () => undefined), forecast('a')];
  await nextTurn();
  const later = forecast('d');
  await nextTurn();
  assert.deepEqual(learners(), [['a', 'b+c', 'a']]);
  const sent = orders(0)?.map(({ tenant, days }) => `${tenant} ${days}`);
  assert.deepEqual(sent, ['default 30', 'other 90', 'default 30']);
  await finish(0);
  assert.deepEqual(await Promise.all(results), [['a'], ['b', 'c'], ['a']]);
  await finish(1, { results: [null] });
  assert.deepEqual(await later, [null]);
});

test('The forecast batcher limits the learners of a task, except for a larger order', async () => {
  const { forecast, learners, finish } = startBatcher({ maxTenantOrders: 9 });
  const results = ['a+b', 'c+d', '1+2+3+4', 'e'].map((userIds) => forecast(userIds));
  await nextTurn();
  for (let task = 0; task < results.length; task++) await finish(task);
  assert.deepEqual((await Promise.all(results)).flat(), ['a', 'b', 'c', 'd', '1', '2', '3', '4', 'e']);
  assert.deepEqual(learners(), [['a+b'], ['c+d'], ['1+2+3+4'], ['e']]);
});

test('The forecast batcher responds 503 with Retry-After to orders beyond its queue', async () => {
  const { forecast, finish } = startBatcher();
  const running = forecast('running');
  await nextTurn();
  const queued = ['a', 'b', 'c', 'd'].map((name) => forecast(name));
  const isUnavailable = (error: unknown): boolean =>
    error instanceof ApiError && error.status === 503 && error.headers['Retry-After'] !== undefined;
  await assert.rejects(forecast('e'), isUnavailable);
  for (let task = 0; task < 3; task++) await finish(task);
  assert.deepEqual((await Promise.all([running, ...queued])).flat(), ['running', 'a', 'b', 'c', 'd']);
});

test('The forecast batcher rejects only the order with a transient error, and returns a defect as a result', async () => {
  const { forecast, finish } = startBatcher({ maxLearners: 9 });
  const results = ['a', 'b+c', 'd', 'e'].map((userIds) => forecast(userIds));
  await nextTurn();
  const settled = Promise.allSettled(results);
  const defect = { reason: 'the record of c', isTransient: false };
  await finish(0, { results: ['a', 'b', defect, { reason: 'not now', isTransient: true }, 'e'] });
  const [a, bc, d, e] = await settled;
  const served = [a, e].map((one) => one?.status === 'fulfilled' && one.value);
  assert.deepEqual(served, [['a'], ['e']]);
  const [b, c]: readonly unknown[] = bc?.status === 'fulfilled' ? bc.value : [];
  assert.equal(b, 'b');
  assert.ok(c instanceof Error && !(c instanceof ApiError));
  assert.match(c.message, /the record of c/);
  assert.ok(d?.status === 'rejected' && d.reason instanceof ApiError);
  assert.deepEqual([d.reason.code, d.reason.message], ['UNAVAILABLE', 'not now']);
});

test('The forecast batcher rejects the orders of a failed task and runs the next task', async () => {
  const { forecast, finish } = startBatcher();
  const failing = Promise.allSettled([forecast('a'), forecast('b')]);
  await nextTurn();
  const next = forecast('c');
  await finish(0, unavailable('Redis is down'));
  for (const one of await failing)
    assert.match(one.status === 'rejected' ? one.reason.message : '', /Redis is down/);
  await nextTurn();
  await finish(1);
  assert.deepEqual(await next, ['c']);
});

test('The forecast batcher serves tenants in turn, in separate tasks when orders queue', async () => {
  const { forecast, learners, finish } = startBatcher({ maxTenantOrders: 9 });
  const many = ['1', '2', '3', '4', '5', '6', '7', '8'].map((name) => forecast(name));
  await nextTurn();
  const other = forecast('a', 'other');
  await nextTurn();
  assert.equal(learners().length, 1, 'at most one task in flight');
  await finish(0);
  await many[0];
  await nextTurn();
  assert.deepEqual(learners(), [['1', '2', '3'], ['a']]);
  await finish(1);
  assert.deepEqual(await other, ['a']);
  await nextTurn();
  for (const task of [2, 3]) {
    await finish(task);
    await nextTurn();
  }
  await Promise.all(many);
  assert.deepEqual(learners().slice(2), [
    ['4', '5', '6'],
    ['7', '8'],
  ]);
});

test('The forecast batcher leaves a task and queue places to other tenants', async () => {
  const { forecast, learners, finish } = startBatcher({ maxTasks: 2, maxLearners: 1, maxTenantOrders: 1 });
  const first = forecast('1');
  await nextTurn();
  const second = forecast('2');
  await assert.rejects(forecast('3'), { code: 'UNAVAILABLE' });
  const other = forecast('a', 'other');
  await nextTurn();
  assert.deepEqual(learners(), [['1'], ['a']]);
  await finish(1);
  await other;
  await nextTurn();
  assert.equal(learners().length, 2);
  await finish(0);
  await first;
  await nextTurn();
  await finish(2);
  assert.deepEqual([await first, await second, await other], [['1'], ['2'], ['a']]);
});

test('The forecast batcher skips the order of a caller that disconnected', async () => {
  const { forecast, batcher, learners, finish } = startBatcher();
  const running = forecast('running');
  await nextTurn();
  let isGone = false;
  const abandoned = batcher.forecast(orderOf('abandoned'), () => {
    if (isGone) throw new Error('disconnected');
  });
  const rejected = assert.rejects(abandoned, /disconnected/);
  const next = forecast('next');
  isGone = true;
  await finish(0);
  await rejected;
  await running;
  await nextTurn();
  await finish(1);
  assert.deepEqual(await next, ['next']);
  assert.deepEqual(learners(), [['running'], ['next']]);
});
