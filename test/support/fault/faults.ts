/** What is done to a deployment while answers arrive. Each resolves when the fault is over. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { sendSignal } from '../../../src/embedded/supervisor.js';
import { waitFor } from '../wait.js';
import type { GatewayMode } from './gateway.js';
import type { Part, Stand } from './stand.js';
import { orderThreads, type ThreadFault, threadFaults } from './thread-orders.js';

export interface Fault {
  readonly name: string;
  /** What clients do meanwhile. */
  readonly clients?: 'hang up' | 'flood';
  /** Takes longer than a short form has. */
  readonly long: boolean;
  /** May be mixed with others. */
  readonly mixes: boolean;
  inflict(stand: Stand, random: () => number): Promise<void>;
}

const oneOf = <Value>(values: readonly Value[], random: () => number): Value =>
  values[Math.floor(random() * values.length)] as Value;

const kill = (part: Part): Fault => ({
  name: `kill -9 ${part}`,
  long: false,
  mixes: true,
  inflict: async (stand, random) => {
    sendSignal(oneOf(stand.pids(part), random), 'SIGKILL');
  },
});

/**
 * Redis alone. While the disk syncs, `everysec` confirms answers up to two seconds before the kernel has them, and a kill may
 * lose them, as docs/operations.md says. Without it the kernel has each write before its reply, so that none may be missing.
 */
const killRedis: Fault = {
  ...kill('redis'),
  inflict: async (stand, random) => {
    const redis = new Redis(stand.redisUrl, { maxRetriesPerRequest: null });
    redis.on('error', () => undefined);
    const [, fsync] = (await redis.config('GET', 'appendfsync')) as string[];
    // Until it is started again, with its file of settings.
    if (fsync === 'everysec') await redis.config('SET', 'appendfsync', 'no');
    redis.disconnect();
    await kill('redis').inflict(stand, random);
  },
};

/** Once shorter than what anybody waits for, then longer than most. */
const standstill = (part: Part): Fault => ({
  name: `stop ${part}`,
  long: true,
  mixes: true,
  inflict: async (stand, random) => {
    const pid = oneOf(stand.pids(part), random);
    sendSignal(pid, 'SIGSTOP');
    await sleep(random() < 0.5 ? 200 + 2000 * random() : 6000 + 12_000 * random());
    sendSignal(pid, 'SIGCONT');
  },
});

const thread = (fault: ThreadFault): Fault => ({
  name: `thread: ${fault}`,
  long: fault === 'loop for ever',
  mixes: true,
  inflict: async (stand, random) => orderThreads(stand.orders, oneOf(stand.pids('api'), random), fault),
});

const onTheWay = (
  name: string,
  mode: GatewayMode,
  ms: (random: () => number) => number,
  long: boolean,
  statements?: RegExp,
): Fault => ({
  name,
  long,
  mixes: true,
  inflict: async ({ gateway }, random) => {
    if (gateway === null) throw new Error('there is nothing between the service and ClickHouse');
    const before = gateway.cuts();
    gateway.set(mode, statements);
    await sleep(ms(random));
    // It has to meet something, also where another fault of the same kind ended meanwhile.
    const hasMet = (): boolean => {
      gateway.set(mode, statements);
      return gateway.cuts() > before;
    };
    await waitFor('something to be cut', hasMet).finally(() => gateway.set('pass'));
  },
});

const nothing = async (): Promise<void> => sleep(2000);

/** Of every deployment. */
export const commonFaults: readonly Fault[] = [
  kill('api'),
  killRedis,
  kill('clickhouse'),
  ...threadFaults.map(thread),
  standstill('api'),
  standstill('redis'),
  standstill('clickhouse'),
];

/** Where the pipeline is a process of its own, behind a proxy. */
export const splitFaults: readonly Fault[] = [
  ...commonFaults,
  kill('pipeline'),
  standstill('pipeline'),
  // A block is tried again after 5 s at the latest.
  onTheWay('ClickHouse away for 25 s', 'away', () => 25_000, true),
  onTheWay('insert stored, answer cut', 'deaf', (random) => 1500 + 2500 * random(), false),
  // There is a learner who is erased in each round.
  onTheWay('deletion done, answer cut', 'deaf', (random) => 3000 * random(), false, /^DELETE FROM attempts/),
  onTheWay('insert torn', 'torn', (random) => 1500 + 2500 * random(), false),
  { name: 'clients hang up', clients: 'hang up', long: false, mixes: false, inflict: nothing },
  { name: 'outbox full', clients: 'flood', long: true, mixes: false, inflict: fillOutbox },
];

/** ClickHouse stays away until the outboxes take nothing more. */
async function fillOutbox({ gateway }: Stand): Promise<void> {
  gateway?.set('away');
  await sleep(20_000);
  gateway?.set('pass');
}

/** Some of the others, one after the other or at once. */
export function mixed(faults: readonly Fault[], random: () => number): Fault {
  const mixable = faults.filter(({ mixes }) => mixes);
  const chosen = Array.from({ length: 2 + Math.floor(2 * random()) }, () => oneOf(mixable, random));
  return {
    name: `mixed: ${chosen.map(({ name }) => name).join(' + ')}`,
    long: chosen.some(({ long }) => long),
    mixes: false,
    inflict: async (stand, random) => {
      await Promise.all(
        chosen.map(async ({ inflict }) => {
          await sleep(4000 * random());
          await inflict(stand, random);
        }),
      );
    },
  };
}
