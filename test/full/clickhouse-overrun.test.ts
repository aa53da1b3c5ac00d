/** Analysts' queries that outlive their limits, at the real limit and again and again. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf, event } from '../support/http/http.js';
import { analystOf, stuckQuery } from '../support/inspect/analyst.js';
import { progress } from '../support/runner/long-form.js';
import { clickhouseOf, startServiceAlone } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const limit = { timeout: 600_000 };
const service = await startServiceAlone({ after });
const caller = callerOf(service, service.key);
const clickhouse = clickhouseOf({ after }, service);
const ask = analystOf(service);

const dear =
  "SELECT sum(editDistance(repeat('ab',5000),concat(repeat('ba',5000),toString(number)))) FROM numbers(25000)";

/** Until another analyst is answered. @returns seconds */
const othersWait = async (): Promise<number> =>
  (await waitFor('another analyst', async () => (await ask('SELECT 1')).text === '1\n')) / 1000;

test('of 80 ms a row: ended at 60 s, or with its client', limit, async () => {
  const { text, seconds } = await ask(dear);
  assert.match(text, /TIMEOUT_EXCEEDED/);
  const waited = await othersWait();
  assert.ok(seconds + waited < 70, `${seconds} and ${waited} s`);
  await ask(dear, 60, AbortSignal.timeout(3000));
  const freed = await othersWait();
  assert.ok(freed < 10, `${freed} s`);
  progress(`ended after ${seconds} s, others waited for ${waited} s; ${freed} s after its client\n`);
});

async function stored(): Promise<{ rows: number; ids: number }> {
  const query = 'SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(event_id)) AS ids FROM attempts';
  const [row] = await selectRows<{ rows: number; ids: number }>(clickhouse, query).catch(() => []);
  return row ?? { rows: 0, ids: 0 };
}

/** Asks one after the other, each another statement, until it is over. @returns how many were refused */
async function attack(number: number, untilMs: number): Promise<number> {
  let refused = 0;
  for (let i = 0; Date.now() < untilMs; i += 1) {
    const { status } = await ask(stuckQuery(`1 AS ${'a'.repeat(number + 1)}_${'b'.repeat(i + 1)}`), 1);
    if (status === 503) refused += 1;
    await sleep(200);
  }
  return refused;
}

test('ten analysts who go on with it hold up no answer for long', limit, async () => {
  const untilMs = Date.now() + 120_000;
  const attacks = Promise.all(Array.from({ length: 10 }, (_, number) => attack(number, untilMs)));
  let sent = 0;
  let longestBehind = 0;
  let caughtUp = Date.now();
  for (; Date.now() < untilMs; sent += 1) {
    assert.equal((await caller.track(event({ user_id: `u${sent % 50}`, event_id: `e${sent}` }))).status, 200);
    await sleep(50);
    if (sent % 20 !== 0) continue;
    if ((await stored()).rows >= sent - 100) caughtUp = Date.now();
    longestBehind = Math.max(longestBehind, Date.now() - caughtUp);
  }
  const refused = (await attacks).reduce((sum, one) => sum + one, 0);
  await waitFor('each answer once', async () => {
    const { rows, ids } = await stored();
    return rows === sent && ids === sent;
  });
  const { text } = await caller.raw({ method: 'GET', path: '/metrics' });
  const restarts = Number(/clickhouse_restarts_total\{reason="analyst_query"[^}]*\} (\d+)/.exec(text)?.[1]);
  progress(
    `${sent} answers, ${restarts} restarts, ${refused} refusals, ${longestBehind} ms behind at most\n`,
  );
  assert.ok(restarts >= 3 && restarts <= 6, `${restarts} restarts`);
  assert.ok(longestBehind < 60_000, `${longestBehind} ms`);
});
