/** Another tenant who posts at a modest rate while somebody asks for much. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { NeighbourFigures, NeighbourPlan } from './neighbour-thread.js';

export interface Neighbour {
  /** What was seen since the last look. */
  look(): Promise<NeighbourFigures>;
  /** What is seen in the next milliseconds. */
  lookFor(ms: number): Promise<NeighbourFigures>;
  stop(): Promise<void>;
}

export async function startNeighbour(plan: NeighbourPlan): Promise<Neighbour> {
  const thread = new Worker(new URL('./neighbour-thread.js', import.meta.url), { workerData: plan });
  await once(thread, 'message');
  const look = async (): Promise<NeighbourFigures> => {
    const told = once(thread, 'message');
    thread.postMessage('look');
    const [figures] = await told;
    return figures as NeighbourFigures;
  };
  return {
    look,
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
