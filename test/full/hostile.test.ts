import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLoadRunner } from '../../bench/load/load-runner.js';
import { createLocalEndpoint, type LoadResult } from '../../bench/load/plan.js';
import { usualTraffic } from '../../bench/load/traffic.js';
import { readMemoryMb } from '../../bench/targets/processes.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import {
  type Flood,
  floods,
  type LargeRequest,
  largeRequests,
  unreadResponses,
} from '../support/hostile/attacks.js';
import { keys, launchTarget, seedLearners } from '../support/hostile/targets.js';
import { callerOf } from '../support/http/http.js';
import { progress, roundsOf } from '../support/runner/long-form.js';
import { startServers } from '../support/servers/servers.js';
import { waitFor } from '../support/wait.js';

/** Largest p99 of another tenant: a multiple of its p99 without an attack, but at least what two busy cores cost. */
const maxSlowdown = { factor: 3, noiseMs: 100 } as const;
/** A busy machine delays responses, so an attack fails only if it slows down the neighbor every time. */
const attempts = 3;
const attackSeconds = 4;
/** Attacks of each kind. */
const maxAttacks = roundsOf(100);
const unreadSeconds = 10;
const burst = 20;
const maxWarmUpMs = 60_000;
const oneByOneMs = 1000;
/** docs/operate/limits.md: resident memory of the process, whatever its readers leave unread. */
const maxUnreadMb = 600;

interface Target {
  readonly port: number;
  readonly pid: number;
  /** Another tenant sends 200 single answers per second. */
  runNeighbor(seconds: number): Promise<LoadResult>;
}

async function startTarget(t: TestContext, servers: Parameters<typeof launchTarget>[1]): Promise<Target> {
  const { port, child } = await launchTarget(t, servers);
  const closers = createClosers(createLogger('silent', 'test'));
  t.after(() => closers.close());
  const runLoad = createLoadRunner(closers);
  const plan = {
    endpoint: createLocalEndpoint(port, keys.neighbor),
    traffic: { ...usualTraffic, learners: 500, eventIds: false },
    ...{ connections: 64, rate: 200, seed: 1, firstAnswer: 1, failsFast: false, graceMs: 20_000 },
  };
  return { port, pid: child.pid ?? 0, runNeighbor: (seconds) => runLoad({ ...plan, seconds }) };
}

interface Attack {
  /** Runs before the measurement. */
  readonly warmUp: (port: number) => Promise<unknown>;
  readonly run: (port: number, signal: AbortSignal) => Promise<void>;
}

/** Runs the attack while the neighbor sends. */
async function attackNeighbor(target: Target, seconds: number, attack: Attack): Promise<LoadResult> {
  const controller = new AbortController();
  const [result] = await Promise.all([
    target.runNeighbor(seconds).finally(() => controller.abort()),
    attack.run(target.port, controller.signal),
  ]);
  return result;
}

/** Sends the request one by one, then many at a time, in turns. */
function sendLarge({ name, status, create }: LargeRequest): Attack {
  let count = 0;
  /** @returns 0 if the service closed the connection, as it does if a body is too large */
  const send = async (port: number, signal: AbortSignal | null): Promise<number> => {
    const { path, ...init } = create(count++);
    const headers = { 'Content-Type': 'application/json', ...init.headers, 'X-API-Key': keys.attacker };
    try {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers, signal });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return 0;
    }
  };
  return {
    // The service may still be busy with the previous attack.
    warmUp: (port) =>
      waitFor(`status ${status} for ${name}`, async () => (await send(port, null)) === status, maxWarmUpMs),
    run: async (port, signal) => {
      while (!signal.aborted) {
        const end = performance.now() + oneByOneMs;
        while (performance.now() < end && !signal.aborted) await send(port, signal);
        await Promise.all(Array.from({ length: burst }, () => send(port, signal)));
      }
    },
  };
}

/** Sends bytes over many sockets and reads no response. */
const sendUnread = ({ sockets, bytes, everyMs }: Flood): Attack => ({
  warmUp: async () => undefined,
  run: async (port, signal) => {
    const open = Array.from({ length: sockets }, () => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true });
      socket.on('error', () => socket.destroy());
      return socket.pause();
    });
    while (!signal.aborted) {
      for (const socket of open) if (socket.writable && socket.writableLength === 0) socket.write(bytes);
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
    for (const socket of open) socket.destroy();
  },
});

async function assertUnharmed(
  t: TestContext,
  target: Target,
  attacks: Record<string, Attack>,
): Promise<void> {
  await target.runNeighbor(2);
  const { latency } = await target.runNeighbor(attackSeconds);
  const maxMs = Math.max(maxSlowdown.noiseMs, maxSlowdown.factor * latency.p99);
  const problems: string[] = [];
  for (const [name, attack] of Object.entries(attacks)) {
    progress(name);
    await attack.warmUp(target.port);
    let p99 = Number.POSITIVE_INFINITY;
    let rejected = 0;
    for (let attempt = 0; attempt < attempts && p99 > maxMs; attempt++) {
      const result = await attackNeighbor(target, attackSeconds, attack);
      p99 = Math.min(p99, result.latency.p99 ?? 0);
      rejected += result.errors;
    }
    t.diagnostic(`${name}: p99 of another tenant ${p99.toFixed(1)} ms, ${latency.p99.toFixed(1)} without`);
    if (p99 > maxMs) problems.push(`${name}: p99 of another tenant is ${p99} ms, not below ${maxMs} ms`);
    if (rejected > 0) problems.push(`${name}: ${rejected} answers of another tenant were rejected`);
  }
  assert.deepEqual(problems, []);
}

async function assertMemoryLimited(t: TestContext, target: Target, flood: Flood): Promise<void> {
  let peakMb = 0;
  const timer = setInterval(() => {
    peakMb = Math.max(peakMb, readMemoryMb(target.pid));
  }, 100);
  const { errors } = await attackNeighbor(target, unreadSeconds, sendUnread(flood)).finally(() =>
    clearInterval(timer),
  );
  t.diagnostic(`${flood.name}: ${peakMb.toFixed(0)} MB`);
  assert.ok(peakMb < maxUnreadMb, `${flood.name}: ${peakMb} MB are resident`);
  assert.equal(errors, 0, `${flood.name}: answers of another tenant were rejected`);
  const caller = callerOf(target, null);
  await waitFor('the memory of unread responses to be free', async () => {
    const { text } = await caller.raw({ method: 'GET', path: '/metrics' });
    return /^skilltrace_unread_answers_bytes\S* 0$/m.test(text);
  });
}

test('The service protects tenants from a caller of another tenant', { timeout: 1_800_000 }, async (t) => {
  const servers = await startServers(t);
  await seedLearners(t, servers);

  await t.test('The largest request of each endpoint does not slow down other tenants', async (t) => {
    const attacks = largeRequests
      .slice(0, maxAttacks)
      .map((request) => [request.name, sendLarge(request)] as const);
    await assertUnharmed(t, await startTarget(t, servers), Object.fromEntries(attacks));
  });

  await t.test('A flood of pipelined requests does not slow down other tenants', async (t) => {
    const attacks = floods.slice(0, maxAttacks).map((flood) => [flood.name, sendUnread(flood)] as const);
    await assertUnharmed(t, await startTarget(t, servers), Object.fromEntries(attacks));
  });

  await t.test('The service limits the memory of responses that clients never read', async (t) => {
    const target = await startTarget(t, servers);
    for (const flood of unreadResponses.slice(0, maxAttacks)) await assertMemoryLimited(t, target, flood);
  });
});
