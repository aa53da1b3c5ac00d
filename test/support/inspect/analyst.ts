import { readStoredEndpoints } from '../../../src/embedded/data-dir.js';
import type { Service } from '../servers/service.js';

/** @returns a function that queries ClickHouse as the analyst of a service, with a limit in seconds */
export function analystOf({ dataDir }: Pick<Service, 'dataDir'>) {
  const { username, password, origin } = new URL(readStoredEndpoints(dataDir)?.analystUrl ?? '');
  const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` };
  return async (query: string, limit = 60, signal: AbortSignal | null = null) => {
    const since = performance.now();
    const url = `${origin}/?max_execution_time=${limit}`;
    const { status, text } = await fetch(url, { method: 'POST', body: query, headers, signal })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      // The connection was cut off.
      .catch((error: unknown) => ({ status: 0, text: String(error) }));
    return { status, text, seconds: (performance.now() - since) / 1000 };
  };
}

/** One row of several minutes. Only the end of the process ends this query. */
export const stuckQuery = (column: string): string =>
  `SELECT ${column}, arrayMap(i -> editDistance(repeat('ab', 30000), concat(repeat('ba', 30000), toString(i))),
  range(50)) FROM numbers(1)`;
