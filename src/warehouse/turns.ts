/** Reads of ClickHouse that take turns: few run at once, and who comes meanwhile waits in a line. */
import { unavailable } from '../errors.js';

export interface TurnRules {
  readonly atOnce: number;
  readonly mostWaiting: number;
  /** Nobody stands in the line for longer. */
  readonly waitMs: number;
}

/** @throws ApiError UNAVAILABLE where the line is too long, in places or in time; and what the read throws */
export type Turns = <Result>(read: () => Promise<Result>) => Promise<Result>;

export function createTurns({ atOnce, mostWaiting, waitMs }: TurnRules): Turns {
  let running = 0;
  const line = new Set<() => void>();

  const stand = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer);
        line.delete(begin);
        resolve();
      };
      const timer = setTimeout(() => {
        line.delete(begin);
        reject(tooMany());
      }, waitMs);
      line.add(begin);
    });

  return async (read) => {
    if (running >= atOnce && line.size >= mostWaiting) throw tooMany();
    if (running < atOnce) running += 1;
    else await stand();
    try {
      return await read();
    } finally {
      // The next one takes over the place.
      const [next] = line;
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

const tooMany = () => unavailable('Too many read what is stored at the same time; try again later');
