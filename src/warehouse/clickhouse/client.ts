import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client';
import { sliceTurn } from '../../slices.js';
import { type Cluster, clusterSettings, everywhere } from './cluster.js';

/** Longest that one statement may take where nothing else is said, in milliseconds; a block of 100,000 rows takes about one second. */
const requestTimeoutMs = 60_000;
/** Below the shortest keep-alive of a ClickHouse server (3 s), so that no request meets a closing socket. */
const idleSocketMs = 2000;
const maxConnections = 8;

/**
 * Client of the ClickHouse server, embedded or remote, over HTTP. Connects with the first statement.
 *
 * @param url `http(s)://user:password@host:port/database`
 * @param timeoutMs how long one statement may take
 */
export function connectWarehouse(
  url: string,
  cluster: Cluster = null,
  timeoutMs = requestTimeoutMs,
): ClickHouseClient {
  return createClient({
    url,
    application: 'skilltrace',
    // Errors reach the caller, who logs them with what was being done.
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: timeoutMs,
    max_open_connections: maxConnections,
    keep_alive: { enabled: true, idle_socket_ttl: idleSocketMs, eagerly_destroy_stale_sockets: true },
    compression: { request: false, response: false },
    clickhouse_settings: cluster === null ? {} : clusterSettings,
  });
}

/** Whether the server answers; never throws. */
export async function isAlive(client: ClickHouseClient): Promise<boolean> {
  const { success } = await client.ping();
  return success;
}

/** For a read whose answer a caller waits for. */
export const callersTime = (): AbortSignal => AbortSignal.timeout(3000);

/** @returns the rows, as objects of the named columns; 64-bit integers come as text or number: wrap them */
export async function selectRows<Row>(
  client: ClickHouseClient,
  query: string,
  signal?: AbortSignal,
  params: Readonly<Record<string, unknown>> = {},
  settings: ClickHouseSettings = {},
): Promise<Row[]> {
  const result = await client.query({
    query,
    format: 'JSONEachRow',
    query_params: params,
    clickhouse_settings: settings,
    ...(signal && { abort_signal: signal }),
  });
  return result.json<Row>();
}

/**
 * As `selectRows`, as they arrive, so that many of them hold up nobody else.
 * @throws Error for more rows than `atMost`
 */
export async function selectManyRows<Row>(
  client: ClickHouseClient,
  query: string,
  signal: AbortSignal,
  params: Readonly<Record<string, unknown>>,
  atMost: number,
): Promise<Row[]> {
  const result = await client.query({
    query: `${query}\nLIMIT ${atMost + 1}`,
    format: 'JSONEachRow',
    query_params: params,
    abort_signal: signal,
  });
  const rows: Row[] = [];
  for await (const arrived of result.stream<Row>()) {
    await sliceTurn();
    for (const row of arrived) rows.push(row.json());
  }
  if (rows.length > atMost) throw new Error(`more than ${atMost} rows`);
  return rows;
}

/** UNKNOWN_DATABASE: nothing was ever stored there. */
export const isUnknownDatabase = (error: unknown): boolean =>
  error instanceof ClickHouseError && error.code === '81';

/** Makes the URL's database. Who may not create one needs no right to where the operator has made it. */
export async function ensureDatabase(url: string, cluster: Cluster = null): Promise<void> {
  try {
    await runOnce(url, cluster, 'SELECT 1');
  } catch (error) {
    if (!isUnknownDatabase(error)) throw error;
    const root = new URL(url);
    const database = decodeURIComponent(root.pathname.slice(1)) || 'default';
    root.pathname = '/default';
    const query = `CREATE DATABASE IF NOT EXISTS ${everywhere('{database:Identifier}', cluster)}`;
    await runOnce(root.href, cluster, query, { database });
  }
}

async function runOnce(url: string, cluster: Cluster, query: string, params: Record<string, string> = {}) {
  const client = connectWarehouse(url, cluster);
  try {
    await client.command({ query, query_params: params });
  } finally {
    await client.close();
  }
}

/** ClickHouse reads this as UTC, whatever its own time zone is. */
export const sqlTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
