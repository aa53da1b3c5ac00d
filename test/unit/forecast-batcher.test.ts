import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  createForecastBatcher,
  type ForecastBatcherOptions,
  type ForecastsMade,
} from '../../src/compute/forecast-batcher.js';
import type { ForecastOrder, ForecastTask } from '../../src/contracts/tasks.js';
import { ApiError, unavailable } from '../../src/errors.js';

const orderOf = (...userIds: string[]): ForecastOrder => ({
  tenant: 'default',
  userIds,
  days: 30,
  level: 0.8,
  locale: 'en',
});

/** The result of each learner is the learner's name. */
const madeOf = (orders: readonly ForecastOrder[]): ForecastsMade => ({
  data: orders.flatMap(({ userIds }) => userIds),
  problems: [],
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
  const { forecast } = createForecastBatcher({ tasks: 1, maxLearners: 3, maxWaiting: 8, run, ...change });
  const learners = () => held.map(({ orders }) => orders.map(({ userIds }) => userIds.join('+')));
  return { forecast, held, learners };
}

test('what comes in one turn shares a task, in its order, and each gets its own', async () => {
  const { forecast, held, learners } = heldBatcher({ maxLearners: 9 });
  const answers = [orderOf('a'), { ...orderOf('b', 'c'), tenant: 'other', days: 90 }, orderOf('a')].map(
    forecast,
  );
  await nextTurn();
  const later = forecast(orderOf('d'));
  await nextTurn();
  assert.deepEqual(learners(), [['a', 'a', 'b+c']]);
  assert.deepEqual(
    held[0]?.orders.map(({ tenant, days }) => [tenant, days]),
    [
      ['default', 30],
      ['default', 30],
      ['other', 90],
    ],
  );
  held[0]?.letGo();
  assert.deepEqual(await Promise.all(answers), [['a'], ['b', 'c'], ['a']]);
  await nextTurn();
  held[1]?.letGo({ data: [null] });
  assert.deepEqual(await later, [null]);
});

test('a task holds no more learners than it may, but for an order of more', async () => {
  const { forecast, held, learners } = heldBatcher({ maxWaiting: 18 });
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
  const { forecast, held, learners } = heldBatcher({ tasks: 2 });
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
    problems: [
      { place: 2, reason: 'the record of c', passing: false },
      { place: 3, reason: 'not now', passing: true },
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
