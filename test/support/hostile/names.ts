/** A learner and a tenant with as many skills as callers could make: what asking for them does to another tenant. */
import { type Asked, type Asking, askFor, median } from './ask.js';
import type { Neighbour } from './neighbour.js';
import type { NeighbourFigures } from './neighbour-thread.js';
import { keys, type Stand } from './stand.js';

export interface NamesFigures {
  readonly name: string;
  readonly answers: readonly Asked[];
  /** Median of the attacker's own latencies, ms. */
  readonly own: number;
  readonly loopDelay: number;
  readonly neighbour: NeighbourFigures;
}

const forMs = 8000;

/** @param big learner with the most skills */
export const namesAttacks = (big: string): { name: string; asking: Asking; together: number }[] => [
  {
    name: 'its mastery, 50 at once',
    asking: { path: `/api/v1/mastery/${big}`, key: keys.attacker },
    together: 50,
  },
  {
    name: 'GET /skills?limit=1, one by one',
    asking: { path: '/api/v1/skills?limit=1', key: keys.attacker },
    together: 1,
  },
  {
    name: 'GET /skills?limit=1000, 10 at once',
    asking: { path: '/api/v1/skills?limit=1000', key: keys.attacker },
    together: 10,
  },
];

export async function attackNames(
  stand: Stand,
  neighbour: Neighbour,
  { name, asking, together }: ReturnType<typeof namesAttacks>[number],
): Promise<NamesFigures> {
  await neighbour.settle();
  await stand.loopDelay();
  const answers = await askFor(stand.port, asking, together, forMs);
  const figures = await neighbour.look();
  const loopDelay = await stand.loopDelay();
  return { name, answers, own: median(answers.map(({ ms }) => ms)), loopDelay, neighbour: figures };
}
