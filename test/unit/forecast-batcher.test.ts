import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createForecastBatcher, type ForecastBatcherOptions } from '../../src/compute/forecast-batcher.js';
import type { ForecastOrder, ForecastTask } from '../../src/contracts/forecasts/forecast-tasks.js';
import { ApiError, unavailable } from '../../src/errors.js';

const orderOf = (...userIds: string[]): ForecastOrder => ofTenant('default', ...userIds);

const ofTenant = (tenant: string, ...userIds: string[]): ForecastOrder => ({
  tenant,
  userIds,
  days: 30,
  level: 0.8,
  locale: 'en',
});

type ForecastsMade = Awaited<ReturnType<ForecastBatcherOptions['run']>>;

/** The result of each learner is the learner's name. */
const madeOf = (orders: readonly ForecastOrder[]): ForecastsMade => ({
  results: orders.flatMap(({ userIds }) => userIds),
});

/** A batcher whose tasks wait until they are let go. */
function heldBatcher(change: Partial<ForecastBatcherOptions> = {}) {
  const held: { orders: ForecastOrder[]; letGo: (reply?: Partial<ForecastsMade> | Error) => void }[] = [];
  const run = (task: ForecastTask): Promise<ForecastsMade> =>
    new Promise((resolve, reject) => {
      const orders: ForecastOrder[] = JSON.parse(task.orders);
      const letGo = (reply: Partial<ForecastsMade> | Error = {}): void =>
        reply instanceof Error ? reject(reply) : resolve({ ...madeOf(orders), ...reply });
      held.push({ orders, letGo });
    });
  const rules = { maxTasks: 1, maxTenantTasks: 1, maxLearners: 3, maxTenantOrders: 4, run, ...change };
  const batcher = createForecastBatcher(rules);
  const forecast = (order: ForecastOrder) => batcher.forecast(order, () => undefined);
  const learners = () => held.map(({ orders }) => orders.map(({ userIds }) => userIds.join('+')));
  return { forecast, held, learners, batcher };
}

test('what comes in one turn shares a task, in its order, and each gets its own', async () => {
  const { forecast, held, learners } = heldBatcher({ maxLearners: 9 });
  const answers = [orderOf('a'), { ...orderOf('b', 'c'), tenant: 'other', days: 90 }, orderOf('a')].map(
    forecast,
  );
  await nextTurn();
  const later = forecast(orderOf('d'));
  await nextTurn();
  assert.deepEqual(learners(), [['a', 'b+c', 'a']]);
  assert.deepEqual(
    held[0]?.orders.map(({ tenant, days }) => [tenant, days]),
    [
      ['default', 30],
      ['other', 90],
      ['default', 30],
    ],
  );
  held[0]?.letGo();
  assert.deepEqual(await Promise.all(answers), [['a'], ['b', 'c'], ['a']]);
  await nextTurn();
  held[1]?.letGo({ results: [null] });
  assert.deepEqual(await later, [null]);
});

test('a task holds no more learners than it may, but for an order of more', async () => {
  const { forecast, held, learners } = heldBatcher({ maxTenantOrders: 9 });
  const answers = [orderOf('a', 'b'), orderOf('c', 'd'), orderOf('1', '2', '3', '4'), orderOf('e')].map(
    forecast,
  );
  for (let i = 0; i < answers.length; i++) {
    await nextTurn();
    held[i]?.letGo();
  }
  assert.deepEqual((await Promise.all(answers)).flat(), ['a', 'b', 'c', 'd', '1', '2', '3', '4', 'e']);
  assert.deepEqual(learners(), [['a+b'], ['c+d'], ['1+2+3+4'], ['e']]);
});

test('as many tasks are away as may be, and no more', async () => {
  const { forecast, held, learners } = heldBatcher({ maxTasks: 2, maxTenantTasks: 2 });
  const answers = [];
  for (const name of ['a', 'b', 'c', 'd']) {
    answers.push(forecast(orderOf(name)));
    await nextTurn();
  }
  assert.deepEqual(learners(), [['a'], ['b']]);
  held[1]?.letGo();
  assert.deepEqual(await answers[1], ['b']);
  await nextTurn();
  assert.deepEqual(learners(), [['a'], ['b'], ['c', 'd']]);
  held[0]?.letGo();
  held[2]?.letGo();
  assert.deepEqual((await Promise.all(answers)).flat(), ['a', 'b', 'c', 'd']);
});

test('too many that wait are refused, and the others are served all the same', async () => {
  const { forecast, held } = heldBatcher();
  const away = forecast(orderOf('away'));
  await nextTurn();
  const waiting = ['a', 'b', 'c', 'd'].map((name) => forecast(orderOf(name)));
  await assert.rejects(
    forecast(orderOf('e')),
    (error) =>
      error instanceof ApiError && error.status === 503 && error.headers['Retry-After'] !== undefined,
  );
  for (let i = 0; i < 3; i++) {
    held[i]?.letGo();
    await nextTurn();
  }
  assert.deepEqual((await Promise.all([away, ...waiting])).flat(), ['away', 'a', 'b', 'c', 'd']);
});

test("a learner's defect is the learner's alone, and what passes is its order's", async () => {
  const { forecast, held } = heldBatcher({ maxLearners: 9 });
  const answers = [orderOf('a'), orderOf('b', 'c'), orderOf('d'), orderOf('e')].map(forecast);
  await nextTurn();
  held[0]?.letGo({
    results: [
      'a',
      'b',
      { reason: 'the record of c', isTransient: false },
      { reason: 'not now', isTransient: true },
      'e',
    ],
  });
  const [a, bc, d, e] = await Promise.allSettled(answers);
  assert.deepEqual(
    [a, e].map((one) => one?.status === 'fulfilled' && one.value),
    [['a'], ['e']],
  );
  const [b, c]: readonly unknown[] = bc?.status === 'fulfilled' ? bc.value : [];
  assert.equal(b, 'b');
  assert.ok(c instanceof Error && !(c instanceof ApiError));
  assert.match(c.message, /the record of c/);
  assert.ok(d?.status === 'rejected' && d.reason instanceof ApiError);
  assert.deepEqual([d.reason.code, d.reason.message], ['UNAVAILABLE', 'not now']);
});

test('a task that fails fails alone', async () => {
  const { forecast, held } = heldBatcher();
  const failing = [orderOf('a'), orderOf('b')].map(forecast);
  await nextTurn();
  const next = forecast(orderOf('c'));
  held[0]?.letGo(unavailable('Redis is away'));
  for (const one of failing) await assert.rejects(one, /Redis is away/);
  await nextTurn();
  held[1]?.letGo();
  assert.deepEqual(await next, ['c']);
});

test('a tenant with a crowd in the line holds nobody up, and others are not put among it', async () => {
  const { forecast, held, learners } = heldBatcher({ maxTenantOrders: 9 });
  const crowd = ['1', '2', '3', '4', '5', '6', '7', '8'].map((name) => forecast(orderOf(name)));
  await nextTurn();
  const other = forecast(ofTenant('other', 'a'));
  held[0]?.letGo();
  await crowd[0];
  await nextTurn();
  assert.deepEqual(learners(), [['1', '2', '3'], ['a']]);
  held[1]?.letGo();
  assert.deepEqual(await other, ['a']);
  for (const i of [2, 3]) {
    await nextTurn();
    held[i]?.letGo();
  }
  await Promise.all(crowd);
  assert.deepEqual(learners().slice(2), [
    ['4', '5', '6'],
    ['7', '8'],
  ]);
});

test('no tenant has all tasks, nor all of the line', async () => {
  const { forecast, held, learners } = heldBatcher({ maxTasks: 2, maxLearners: 1, maxTenantOrders: 1 });
  const crowd = [forecast(orderOf('1'))];
  await nextTurn();
  crowd.push(forecast(orderOf('2')));
  await assert.rejects(forecast(orderOf('3')), { code: 'UNAVAILABLE' });
  crowd.push(forecast(ofTenant('other', 'a')));
  await nextTurn();
  assert.deepEqual(learners(), [['1'], ['a']]);
  held[1]?.letGo();
  await crowd[2];
  await nextTurn();
  assert.equal(held.length, 2);
  held[0]?.letGo();
  await crowd[0];
  await nextTurn();
  held[2]?.letGo();
  assert.deepEqual((await Promise.all(crowd)).flat(), ['1', '2', 'a']);
});

test('nothing is computed for a caller who has left', async () => {
  const { forecast, batcher, held, learners } = heldBatcher();
  const away = forecast(orderOf('away'));
  await nextTurn();
  let gone = false;
  const left = batcher.forecast(orderOf('left'), () => {
    if (gone) throw new Error('gone');
  });
  const next = forecast(orderOf('next'));
  gone = true;
  held[0]?.letGo();
  await assert.rejects(left, /gone/);
  await away;
  await nextTurn();
  held[1]?.letGo();
  assert.deepEqual(await next, ['next']);
  assert.deepEqual(learners(), [['away'], ['next']]);
});
