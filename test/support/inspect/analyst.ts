import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Service } from '../servers/service.js';

export interface Told {
  /** 0 where the connection was cut. */
  readonly status: number;
  readonly text: string;
  readonly seconds: number;
}

export type Ask = (query: string, seconds?: number, signal?: AbortSignal) => Promise<Told>;

/** Asks the ClickHouse of a service that was started alone as its analyst, with a limit of seconds. */
export function analystOf({ dataDir }: Pick<Service, 'dataDir'>): Ask {
  const { analyst_url } = JSON.parse(readFileSync(join(dataDir, 'endpoints.json'), 'utf8'));
  const { username, password, origin } = new URL(analyst_url);
  const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` };
  return async (query, seconds = 60, signal) => {
    const started = performance.now();
    const told = (status: number, text: string) => ({
      ...{ status, text },
      seconds: (performance.now() - started) / 1000,
    });
    try {
      const url = `${origin}/?max_execution_time=${seconds}`;
      const response = await fetch(url, { method: 'POST', body: query, headers, signal: signal ?? null });
      return told(response.status, await response.text());
    } catch (error) {
      return told(0, String(error));
    }
  };
}

/** One row of minutes, in one function: nothing but the end of the process ends it. `more` goes into the columns. */
export const stuckQuery = (more: string): string =>
  `SELECT ${more}, arrayMap(i -> editDistance(repeat('ab', 30000), concat(repeat('ba', 30000), toString(i))),
  range(50)) FROM numbers(1)`;
