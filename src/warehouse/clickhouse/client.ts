import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client';
import { waitForSlice } from '../../slices.js';
import { appendOnCluster, type ClusterName, localTableName } from './ddl.js';

/** An insert of 100,000 rows takes about 1 s. */
const requestTimeoutMs = 60_000;
/** Below the shortest keep-alive of a ClickHouse server (3 s). */
const idleSocketMs = 2000;
const maxConnections = 8;

/** Exactly-once inserts require these settings. */
const clusterSettings: ClickHouseSettings = {
  // When INSERT returns, most replicas must have the rows: the drain then deletes them from the outbox.
  distributed_foreground_insert: 1,
  insert_quorum: 'auto',
  // Run subqueries once, not on every shard.
  distributed_product_mode: 'global',
  // Unavailable replicas catch up later. The client's type lacks this value.
  distributed_ddl_output_mode: 'none_only_active' as 'none',
  // Repairs delete by a subquery. No other process changes these rows.
  allow_nondeterministic_mutations: 1,
  mutations_sync: '1',
};

/** Connects on the first statement. */
export const connectWarehouse = (
  url: string,
  cluster: ClusterName = null,
  timeoutMs = requestTimeoutMs,
): ClickHouseClient =>
  createClient({
    url,
    application: 'skilltrace',
    log: { level: ClickHouseLogLevel.OFF },
    request_timeout: timeoutMs,
    max_open_connections: maxConnections,
    keep_alive: { enabled: true, idle_socket_ttl: idleSocketMs, eagerly_destroy_stale_sockets: true },
    compression: { request: false, response: false },
    clickhouse_settings: cluster === null ? {} : clusterSettings,
  });

/** Never throws. */
export const respondsToPing = async (client: ClickHouseClient): Promise<boolean> =>
  (await client.ping()).success;

export const createReadDeadline = (): AbortSignal => AbortSignal.timeout(3000);

interface StatementOptions {
  readonly params?: object;
  readonly signal?: AbortSignal | undefined;
  readonly settings?: ClickHouseSettings;
}

const clientOptions = (query: string, { params, signal, settings }: StatementOptions) => ({
  query,
  ...(params && { query_params: { ...params } }),
  ...(settings && { clickhouse_settings: settings }),
  ...(signal && { abort_signal: signal }),
});

/** 64-bit integers arrive as text or number. */
export async function selectRows<Row>(
  client: ClickHouseClient,
  query: string,
  options: StatementOptions = {},
): Promise<Row[]> {
  const result = await client.query({ ...clientOptions(query, options), format: 'JSONEachRow' });
  return result.json<Row>();
}

export async function selectText(
  client: ClickHouseClient,
  query: string,
  options: StatementOptions,
): Promise<string> {
  const result = await client.query({ ...clientOptions(query, options), format: 'TabSeparated' });
  return result.text();
}

export async function selectNumber(
  client: ClickHouseClient,
  query: string,
  options: StatementOptions = {},
): Promise<number> {
  const [row = {}] = await selectRows<object>(client, query, options);
  return Number(Object.values(row)[0] ?? 0);
}

/** Yields to the event loop between chunks. */
export async function selectManyRows<Row>(
  client: ClickHouseClient,
  query: string,
  options: StatementOptions,
): Promise<Row[]> {
  const result = await client.query({ ...clientOptions(query, options), format: 'JSONEachRow' });
  const rows: Row[] = [];
  for await (const chunk of result.stream<Row>()) {
    await waitForSlice();
    for (const row of chunk) rows.push(row.json());
  }
  return rows;
}

export const runStatement = (client: ClickHouseClient, query: string, options: StatementOptions = {}) =>
  client.command(clientOptions(query, options));

export async function syncReplicas(
  client: ClickHouseClient,
  table: string,
  cluster: ClusterName,
  signal?: AbortSignal,
): Promise<void> {
  if (cluster === null) return;
  const query = `SYSTEM SYNC REPLICA ON CLUSTER ${cluster} ${localTableName(table, cluster)}`;
  await runStatement(client, query, { signal });
}

/** UNKNOWN_DATABASE */
export const isUnknownDatabase = (error: unknown): boolean =>
  error instanceof ClickHouseError && error.code === '81';

/** The account needs no right to create a database that exists. */
export async function ensureDatabase(url: string, cluster: ClusterName = null): Promise<void> {
  try {
    await runOnNewConnection(url, cluster, 'SELECT 1');
  } catch (error) {
    if (!isUnknownDatabase(error)) throw error;
    const defaultUrl = new URL(url);
    const database = decodeURIComponent(defaultUrl.pathname.slice(1)) || 'default';
    defaultUrl.pathname = '/default';
    const query = `CREATE DATABASE IF NOT EXISTS ${appendOnCluster('{database:Identifier}', cluster)}`;
    await runOnNewConnection(defaultUrl.href, cluster, query, { database });
  }
}

async function runOnNewConnection(
  url: string,
  cluster: ClusterName,
  query: string,
  params: object = {},
): Promise<void> {
  const client = connectWarehouse(url, cluster);
  try {
    await runStatement(client, query, { params });
  } finally {
    await client.close();
  }
}

/** Without a zone: ClickHouse reads it as UTC. @param ms Unix milliseconds */
export const formatSqlTime = (ms: number): string =>
  new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
