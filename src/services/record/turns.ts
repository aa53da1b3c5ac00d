/** Work that takes turns: little of it runs at once, and who comes meanwhile waits in a line. */
import { unavailable } from '../../errors.js';
import { createFairLine, createPlaces, type Standing } from './fair-line.js';

export interface TurnRules {
  readonly atOnce: number;
  /** Of these for one tenant. */
  readonly ofTenant: number;
  /** Of one tenant. */
  readonly mostWaiting: number;
  /** Nobody stands in the line for longer. */
  readonly waitMs: number;
  /** What is told where the line is too long, in places or in time. */
  readonly refusal: string;
}

/**
 * @param refuse in place of work whose tenant's line is too long
 * @throws ApiError UNAVAILABLE where nothing is given for that; and what the work throws
 */
export type Turns = <Result>(
  tenant: string,
  work: () => Promise<Result>,
  refuse?: () => Result,
) => Promise<Result>;

export function createTurns({ atOnce, ofTenant, mostWaiting, waitMs, refusal }: TurnRules): Turns {
  const places = createPlaces(atOnce, ofTenant);
  const line = createFairLine<Standing & { readonly begin: () => void }>();

  /** @returns whether it came to the caller's turn */
  const stand = (tenant: string): Promise<boolean> =>
    new Promise((resolve) => {
      const begin = (): void => {
        clearTimeout(timer);
        places.take(tenant);
        resolve(true);
      };
      const waiting = { tenant, weight: 1, begin };
      const timer = setTimeout(() => {
        line.drop(waiting);
        resolve(false);
      }, waitMs);
      line.add(waiting);
    });

  const tooMany = (): never => {
    throw unavailable(refusal);
  };

  return async (tenant, work, refuse = tooMany) => {
    if (places.free(tenant)) places.take(tenant);
    else if (line.of(tenant).waiting.length >= mostWaiting || !(await stand(tenant))) return refuse();
    try {
      return await work();
    } finally {
      places.leave(tenant);
      line.take((next) => places.free(next.tenant))?.begin();
    }
  };
}
