import { ApiError } from '../errors.js';
import type { Logger } from '../telemetry.js';
import type { Exchange } from './exchange.js';
import type { RequestFigures } from './request-figures.js';
import type { Route } from './route.js';

export type FailureLog = ReturnType<typeof createFailureLog>;

/** While Redis is unavailable every request fails for the same reason: one line a second is logged, with their number. */
const unavailableEveryMs = 1000;

/** @param now monotonic clock in milliseconds */
export function createFailureLog(logger: Logger, figures: RequestFigures, now: () => number) {
  let nextAt = 0;
  let unlogged = 0;
  return {
    log: (exchange: Exchange, route: Route | null, error: unknown): void => {
      if (!(error instanceof ApiError) || error.code !== 'UNAVAILABLE') {
        figures.noteDefects(1);
        logger.error({ ...placeOf(exchange, route), err: error }, 'request failed');
        return;
      }
      if (now() < nextAt) {
        unlogged += 1;
        return;
      }
      logger.warn({ ...placeOf(exchange, route), err: error, alike: unlogged }, 'request refused for now');
      nextAt = now() + unavailableEveryMs;
      unlogged = 0;
    },
    /** Logs an answer in parts, some of which failed by a defect; one line, for they are mostly alike. */
    logParts: (exchange: Exchange, route: Route | null, [first, ...others]: readonly ApiError[]): void => {
      if (first === undefined) return;
      figures.noteDefects(1 + others.length);
      const where = placeOf(exchange, route);
      logger.error({ ...where, err: first, alike: others.length }, 'a part of a request failed');
    },
  };
}

/** The pattern of the path is logged, not the path: it names learners. */
const placeOf = ({ requestId, method }: Exchange, route: Route | null): object => ({
  requestId,
  method,
  route: route?.path ?? null,
});
