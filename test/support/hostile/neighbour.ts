/** Another tenant who posts at a modest rate while somebody asks for much. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { waitFor } from '../wait.js';
import type { NeighbourFigures, NeighbourPlan } from './neighbour-thread.js';

export interface Neighbour {
  /** What was seen since the last look. */
  look(): Promise<NeighbourFigures>;
  /** Resolves when nothing waits any more that an attack has held up, and forgets what was seen. */
  settle(): Promise<void>;
  /** What is seen in the next milliseconds. */
  lookFor(ms: number): Promise<NeighbourFigures>;
  stop(): Promise<void>;
}

/** Under way at any moment, and how long those who were held up may take. */
const servedWaiting = 5;
const settleMs = 30_000;

export async function startNeighbour(plan: NeighbourPlan): Promise<Neighbour> {
  const thread = new Worker(new URL('./neighbour-thread.js', import.meta.url), { workerData: plan });
  await once(thread, 'message');
  const look = async (): Promise<NeighbourFigures> => {
    const told = once(thread, 'message');
    thread.postMessage('look');
    const [figures] = await told;
    return figures as NeighbourFigures;
  };
  const isServed = async (): Promise<boolean> => (await look()).waiting < servedWaiting;
  return {
    look,
    settle: async () => {
      await waitFor('the neighbour to be served', isServed, settleMs).catch(() => undefined);
      await look();
    },
    lookFor: async (ms) => {
      await look();
      await sleep(ms);
      return look();
    },
    stop: async () => {
      await thread.terminate();
    },
  };
}
