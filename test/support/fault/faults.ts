/** Faults in a deployment while answers arrive, and the choice of the faults for a test run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { sendSignal } from '../../../src/embedded/supervisor.js';
import { groupBy } from '../../../src/lists.js';
import type { Scoped } from '../scope.js';
import { waitFor } from '../wait.js';
import {
  type Deployment,
  orderThreads,
  type Part,
  startSplit,
  startWhole,
  type ThreadFault,
  threadFaults,
} from './deployment.js';
import type { GatewayMode } from './gateway.js';

type Random = () => number;

export interface Fault {
  readonly name: string;
  /** What the clients do during the fault, other than usual. */
  readonly clients?: 'hang up' | 'flood';
  /** Only in the long form. */
  readonly isLong: boolean;
  readonly canMix: boolean;
  /** Resolves when the fault is over. */
  inflict(deployment: Deployment, random: Random): Promise<unknown>;
}

const pick = <Value>(values: readonly Value[], random: Random): Value =>
  values[Math.floor(random() * values.length)] as Value;

const kill = (part: Part): Fault => ({
  ...{ name: `kill -9 ${part}`, isLong: false, canMix: true },
  inflict: async (deployment, random) => sendSignal(pick(deployment.pids(part), random), 'SIGKILL'),
});

/**
 * With `everysec`, Redis confirms writes up to two seconds before it passes them to the kernel while the disk syncs, and a kill
 * may lose them (docs/operate/back-up-and-restore.md). With `no`, it passes each write on before its reply. The restart
 * resets the setting.
 */
const killRedis: Fault = {
  ...kill('redis'),
  inflict: async (deployment, random) => {
    const redis = new Redis(deployment.redisUrl, { maxRetriesPerRequest: null });
    redis.on('error', () => undefined);
    try {
      const [, fsync] = (await redis.config('GET', 'appendfsync')) as string[];
      if (fsync === 'everysec') await redis.config('SET', 'appendfsync', 'no');
    } finally {
      redis.disconnect();
    }
    await kill('redis').inflict(deployment, random);
  },
};

/** Shorter than all timeouts, or longer than most. */
const pause = (part: Part): Fault => ({
  ...{ name: `stop ${part}`, isLong: true, canMix: true },
  inflict: async (deployment, random) => {
    const pid = pick(deployment.pids(part), random);
    sendSignal(pid, 'SIGSTOP');
    await sleep(random() < 0.5 ? 200 + 2000 * random() : 6000 + 12_000 * random());
    sendSignal(pid, 'SIGCONT');
  },
});

const breakThread = (fault: ThreadFault): Fault => ({
  ...{ name: `thread: ${fault}`, isLong: fault === 'loop for ever', canMix: true },
  inflict: async (deployment, random) =>
    orderThreads(deployment.orders, pick(deployment.pids('api'), random), fault),
});

const cut = (
  name: string,
  mode: GatewayMode,
  [minMs, maxMs]: readonly [number, number],
  statements?: RegExp,
): Fault => ({
  ...{ name, isLong: minMs > 10_000, canMix: true },
  inflict: async ({ gateway }, random) => {
    if (gateway === null) throw new Error('this deployment has no gateway');
    const before = gateway.cuts();
    gateway.set(mode, statements);
    await sleep(minMs + (maxMs - minMs) * random());
    await waitFor('a cut request', () => {
      // A mixed fault may have reset the mode.
      gateway.set(mode, statements);
      return gateway.cuts() > before;
    }).finally(() => gateway.set('pass'));
  },
});

/** ClickHouse is down while a flood fills the outbox. runRound checks that answers were rejected. */
const fillOutbox: Fault = {
  ...{ name: 'outbox full', clients: 'flood', isLong: true, canMix: false },
  inflict: async ({ gateway }) => {
    gateway?.set('down');
    await sleep(20_000);
    gateway?.set('pass');
  },
};

const commonFaults: readonly Fault[] = [
  kill('api'),
  killRedis,
  kill('clickhouse'),
  ...threadFaults.map(breakThread),
  pause('api'),
  pause('redis'),
  pause('clickhouse'),
];

const splitFaults: readonly Fault[] = [
  ...commonFaults,
  kill('pipeline'),
  pause('pipeline'),
  // The longest pause between two attempts of a block is 5 s.
  cut('ClickHouse down for 25 s', 'down', [25_000, 25_000]),
  cut('insert stored, response cut', 'deaf', [1500, 4000]),
  cut('deletion done, response cut', 'deaf', [0, 3000], /^DELETE FROM attempts/),
  cut('insert torn', 'torn', [1500, 4000]),
  {
    ...{ name: 'clients hang up', clients: 'hang up', isLong: false, canMix: false },
    inflict: () => sleep(2000),
  },
  fillOutbox,
];

/** Two or three other faults within four seconds. */
function mix(faults: readonly Fault[], random: Random): Fault {
  const all = faults.filter(({ canMix }) => canMix);
  const chosen = Array.from({ length: 2 + Math.floor(2 * random()) }, () => pick(all, random));
  return {
    name: `mixed: ${chosen.map(({ name }) => name).join(' + ')}`,
    isLong: chosen.some(({ isLong }) => isLong),
    canMix: false,
    inflict: (deployment, random) =>
      Promise.all(
        chosen.map(({ inflict }) => sleep(4000 * random()).then(() => inflict(deployment, random))),
      ),
  };
}

export interface Series {
  readonly name: string;
  start(t: Scoped): Promise<Deployment>;
  readonly faults: readonly Fault[];
}

/** Full after a few seconds. */
const outbox = { OUTBOX_MAX_ROWS: '32000' };
const redisFaults = splitFaults.filter(({ name }) => name.includes('redis'));

const series: readonly Series[] = [
  { name: 'API and pipeline', start: (t) => startSplit(t, 'everysec', outbox), faults: splitFaults },
  { name: 'one process', start: (t) => startWhole(t, 1), faults: commonFaults },
  { name: 'fsync always', start: (t) => startSplit(t, 'always', outbox), faults: redisFaults },
  { name: '2 API processes', start: (t) => startWhole(t, 2), faults: commonFaults },
];

/** Every fault of every deployment once in random order, then mixed ones. @param count rounds in total */
export function planFaults(count: number, isLong: boolean, random: Random): Series[] {
  const chosen = series.slice(0, isLong ? series.length : 2).map((one) => ({
    ...one,
    faults: one.faults.filter((fault) => isLong || !fault.isLong),
  }));
  const rounds = chosen
    .flatMap(({ name, faults }) => faults.map((fault) => ({ name, fault, rank: random() })))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, count);
  for (let i = rounds.length; i < count; i++) {
    const { name, faults } = chosen[i % chosen.length] as Series;
    rounds.push({ name, fault: mix(faults, random), rank: i });
  }
  const byName = groupBy(rounds, ({ name }) => name);
  return chosen.flatMap((one) => {
    const own = byName.get(one.name) ?? [];
    return own.length === 0 ? [] : [{ ...one, faults: own.map(({ fault }) => fault) }];
  });
}
