/** How long the event loop is held by the largest that each endpoint may be asked for, and what another tenant waits. */
import { type Asked, ask, median } from './ask.js';
import type { LargestCase } from './largest.js';
import type { Neighbour } from './neighbour.js';
import { type Stand, watchPeak } from './stand.js';

export interface LoopFigures {
  readonly name: string;
  readonly statuses: string;
  readonly bytes: number;
  /** Median latency alone, and of many at once, ms. */
  readonly alone: number;
  readonly together: number;
  /** Longest delay of the event loop, the least over the rounds: a busy machine delays it as well. */
  readonly delayAlone: number;
  readonly delayTogether: number;
  /** Another tenant's p99 meanwhile, the least over the rounds as well. */
  readonly waitAlone: number;
  readonly waitTogether: number;
  /** Of another tenant's answers. */
  readonly refused: number;
  /** Resident memory at most, MB. */
  readonly memory: number;
}

const rounds = 3;
/** So many at least and so long, unless it takes too long. */
const oneByOne = { count: 5, ms: 300, mostMs: 1500 } as const;
const atOnce = 20;
/** After that there are no more rounds. */
const enoughMs = 4000;

interface Round {
  readonly alone: readonly Asked[];
  readonly together: readonly Asked[];
  readonly delays: readonly [number, number];
  readonly waits: readonly [number, number];
  readonly refused: number;
}

export async function measureCase(
  stand: Stand,
  neighbour: Neighbour,
  { name, asking }: LargestCase,
): Promise<LoopFigures> {
  await neighbour.settle();
  const since = performance.now();
  const peak = watchPeak(stand);
  const done: Round[] = [];
  let number = 0;
  const next = (): Promise<Asked> => ask(stand.port, asking(number++));
  while (done.length < rounds && performance.now() - since < enoughMs)
    done.push(await oneRound(stand, neighbour, next));
  const alone = done.flatMap((round) => round.alone);
  const together = done.flatMap((round) => round.together);
  return {
    name,
    statuses: statusesOf([...alone, ...together]),
    bytes: Math.max(...alone.map(({ bytes }) => bytes)),
    alone: median(alone.map(({ ms }) => ms)),
    together: median(together.map(({ ms }) => ms)),
    delayAlone: Math.min(...done.map(({ delays }) => delays[0])),
    delayTogether: Math.min(...done.map(({ delays }) => delays[1])),
    waitAlone: Math.min(...done.map(({ waits }) => waits[0])),
    waitTogether: Math.min(...done.map(({ waits }) => waits[1])),
    refused: done.reduce((sum, { refused }) => sum + refused, 0),
    memory: peak.stop(),
  };
}

async function oneRound(stand: Stand, neighbour: Neighbour, next: () => Promise<Asked>): Promise<Round> {
  const since = performance.now();
  const alone: Asked[] = [];
  await neighbour.settle();
  await stand.loopDelay();
  while (alone.length < oneByOne.count || performance.now() - since < oneByOne.ms) {
    alone.push(await next());
    if (performance.now() - since > oneByOne.mostMs) break;
  }
  const delayAlone = await stand.loopDelay();
  const besideOne = await neighbour.look();
  const together = await Promise.all(Array.from({ length: atOnce }, next));
  const besideMany = await neighbour.look();
  return {
    alone,
    together,
    delays: [delayAlone, await stand.loopDelay()],
    waits: [besideOne.p99, besideMany.p99],
    refused: besideOne.refused + besideMany.refused,
  };
}

function statusesOf(asked: readonly Asked[]): string {
  const counts = new Map<number, number>();
  for (const { status } of asked) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count}x${status}`).join(' ');
}
