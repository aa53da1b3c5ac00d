import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClient } from '../../src/store/redis/connection/client.js';
import type { Caller, JsonAnswer } from './http/http.js';

/** Polling takes CPU from the process that it waits for, so the interval grows with the waiting time. */
const [shortestMs, longestMs, share] = [20, 100, 0.05];

/**
 * Polls until `condition` returns true.
 *
 * @param limitMs reached only in a failing test
 * @returns milliseconds waited
 */
export async function waitFor(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 180_000,
): Promise<number> {
  const since = performance.now();
  while (!(await condition())) {
    const passed = performance.now() - since;
    if (passed > limitMs) throw new Error(`timeout after ${limitMs} ms: ${what}`);
    await sleep(Math.max(shortestMs, Math.min(longestMs, share * passed)));
  }
  return performance.now() - since;
}

/** Waits until a stream is empty. */
export const emptied = (redis: Pick<RedisClient, 'xlen'>, key: string): Promise<number> =>
  waitFor(`an empty ${key}`, async () => (await redis.xlen(key)) === 0);

/** Repeats a request until its result is accepted. @returns the accepted result */
export async function askUntil<Told>(
  what: string,
  ask: () => Promise<Told>,
  wanted: (told: Told) => boolean,
): Promise<Told> {
  let told: Told | undefined;
  await waitFor(what, async () => {
    told = await ask();
    return wanted(told);
  });
  return told as Told;
}

/** Health or readiness without a warning: the first check can fail because a server responds slowly. */
export const waitUntilHealthy = (caller: Caller, path = '/api/v1/health'): Promise<JsonAnswer> =>
  askUntil(
    path,
    () => caller.get(path),
    ({ json }) => json.data?.status === 'ok' || json.reasons?.length === 0,
  );

/** Other tests of the service may have started an audit. @param operator key with scope operator */
export const waitUntilNoAudit = (operator: Caller): Promise<JsonAnswer> =>
  askUntil(
    'the end of the audit',
    () => operator.get('/api/v1/audits'),
    ({ json }) => json.data?.running === false,
  );

/** Waits until ClickHouse has all rows of the service. */
export const waitUntilStored = (caller: Caller): Promise<JsonAnswer> =>
  askUntil(
    'an empty outbox',
    () => caller.get('/api/v1/health'),
    ({ json }) => json.data?.checks.pipeline.outbox_length === 0,
  );
