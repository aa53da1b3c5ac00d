/** Analysts' queries that do not end: by themselves soon after their limit or their reader, or with the engine. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf, event } from '../support/http/http.js';
import { analystOf, stuckQuery } from '../support/inspect/analyst.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { clickhouseOf, clickhousePid, startServiceAlone } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const limit = { timeout: 120_000 };
const service = await startServiceAlone({ after });
const caller = callerOf(service, service.key);
const clickhouse = clickhouseOf({ after }, service);
const ask = analystOf(service);

exitAfterTests();

/** Of 13 ms a row: a block of the usual size takes minutes. */
const dear =
  "SELECT sum(editDistance(repeat('ab', 2000), concat(repeat('ba', 2000), toString(number)))) FROM numbers(25000)";
const stuck = stuckQuery("'a-learner'");

const restarts = async (reason: string): Promise<number> => {
  const { text } = await caller.raw({ method: 'GET', path: '/metrics' });
  const figure = `skilltrace_clickhouse_restarts_total{reason="${reason}",process="all"} `;
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(figure))
      ?.slice(figure.length),
  );
};

/** Answers go on until it is called. @returns how many were accepted */
function keepAnswering(user_id: string): () => Promise<number> {
  let isOver = false;
  const answering = (async () => {
    let sent = 0;
    for (; !isOver; sent += 1) {
      const answered = await caller.track(event({ user_id, event_id: `${user_id}-${sent}` }));
      assert.equal(answered.status, 200);
      await sleep(20);
    }
    return sent;
  })();
  return () => {
    isOver = true;
    return answering;
  };
}

test('a dear query ends with its limit, and soon after its client', limit, async () => {
  const { text, seconds } = await ask(dear, 1);
  assert.match(text, /TIMEOUT_EXCEEDED/);
  assert.ok(seconds < 6, `${seconds} s`);
  await ask(dear, 60, AbortSignal.timeout(500));
  const next = await ask('SELECT 1');
  assert.equal(next.text, '1\n');
  assert.ok(next.seconds < 5, `${next.seconds} s`);
  assert.equal(await restarts('analyst_query'), 0);
});

test('one that nothing ends takes the engine with it, and no answer', limit, async () => {
  const stop = keepAnswering('ada');
  const { status, seconds } = await ask(stuck, 1);
  assert.equal(status, 0, 'it is cut off');
  assert.ok(seconds > 5.5 && seconds < 10, `${seconds} s`);
  await waitFor('another analyst', async () => (await ask('SELECT 1')).text === '1\n');
  assert.equal(await restarts('analyst_query'), 1);
  assert.equal(await restarts('died'), 0);

  const again = await ask(`/* again */ ${stuck.replace('a-learner', 'b').replace('50', '60').toLowerCase()}`);
  assert.equal(again.status, 503);
  assert.match(again.text, /^Code: 202\. .*This query outlived its limit; try again in \d+ s/);
  assert.equal((await ask('SELECT 2')).text, '2\n');

  const sent = await stop();
  const counted = async () => {
    const [row] = await selectRows<{ rows: number; ids: number }>(
      clickhouse,
      "SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(event_id)) AS ids FROM attempts WHERE user_id = 'ada'",
    ).catch(() => []);
    return [row?.rows, row?.ids].join();
  };
  await waitFor('each answer once', async () => (await counted()) === `${sent},${sent}`);
});

test('one that dies by itself is counted as such', limit, async () => {
  process.kill(clickhousePid(service), 'SIGKILL');
  await waitFor('the count', async () => (await restarts('died')) === 1);
  assert.equal(await restarts('analyst_query'), 1);
});
