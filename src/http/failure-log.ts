import { ApiError } from '../errors.js';
import type { Logger } from '../telemetry.js';
import type { Exchange } from './exchange.js';
import type { Route } from './routes.js';

export interface FailureLog {
  log(exchange: Exchange, route: Route | null, error: unknown): void;
}

/** While Redis is away every request fails for the same reason: one line a second tells it, with their number. */
const unavailableEveryMs = 1000;

/** @param now monotonic clock in milliseconds */
export function createFailureLog(logger: Logger, now: () => number): FailureLog {
  let nextAt = 0;
  let unlogged = 0;
  return {
    log: (exchange, route, error) => {
      const isRefusal = error instanceof ApiError && error.code === 'UNAVAILABLE';
      if (isRefusal && now() < nextAt) {
        unlogged += 1;
        return;
      }
      // The pattern of the path is logged, not the path: it names learners.
      const where = { requestId: exchange.requestId, method: exchange.method, route: route?.path ?? null };
      if (!isRefusal) {
        logger.error({ ...where, err: error }, 'request failed');
        return;
      }
      logger.warn({ ...where, err: error, alike: unlogged }, 'request refused for now');
      nextAt = now() + unavailableEveryMs;
      unlogged = 0;
    },
  };
}
