import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Session } from 'chdb';
import { waitAtMost } from '../../lifecycle.js';
import type { ChildMessage, ChildOptions } from '../start-clickhouse.js';
import { writeAccessConfig } from './analyst-access.js';
import { createBridge } from './http.js';
import { buildOverrun } from './overruns.js';
import { type QueryLanes, startLanes } from './query-lanes.js';
import { quoteLiteral, quoteName } from './sql.js';

/*
 * The embedded ClickHouse server. It receives ChildOptions over IPC, and stops on SIGTERM or when the channel
 * closes.
 */

/** For queries and merges, in addition to an analyst's limit. */
const serviceMemoryBytes = 4_000_000_000;
/** Measured from the start of a shutdown. */
const finishTimeoutMs = 3000;
const interruptTimeoutMs = 4000;
const exitTimeoutMs = 4700;
/** After the last query: time for responses to reach their sockets. */
const flushTimeoutMs = 300;
/** The parent normally kills this process first. */
const parentKillMs = 1000;

function log(text: string): void {
  process.stderr.write(`clickhouse: ${text.replaceAll('\n', ' ').slice(0, 500)}\n`);
}

async function openEngine({
  dataDir,
  readableTables,
  database,
  analystLimits,
}: ChildOptions): Promise<Session> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const access = await writeAccessConfig(dataDir, readableTables);
  const memory = serviceMemoryBytes + analystLimits.memoryBytes;
  const connectionArgs = [`--max_server_memory_usage=${memory}`, `--config-file=${access}`];
  let session: Session;
  try {
    session = new Session(dataDir, { connectionArgs });
  } catch (cause) {
    // The engine writes its reason to stderr, not into the exception.
    const reason = 'in use by another server, or not accessible';
    throw new Error(`cannot open the data folder ${dataDir}: ${reason}`, { cause });
  }
  await session.queryAsync(`CREATE DATABASE IF NOT EXISTS ${quoteName(database)}`);
  return session;
}

/** Synchronous, because all pool threads may be busy. */
function killQuery(engine: Session, id: string): void {
  engine.query(`KILL QUERY WHERE Settings['log_comment'] = ${quoteLiteral(id)} ASYNC`);
}

/** A normal exit would wait for running queries (tried: minutes). */
function crash(error: Error): void {
  log(error.message);
  process.kill(process.pid, 'SIGKILL');
}

const sendToParent = (message: ChildMessage): unknown =>
  process.send?.(message, undefined, undefined, () => {});

/** Without a parent, the process ends itself. */
function reportOverrun(statement: string): void {
  sendToParent({ overrun: buildOverrun(statement, Date.now()) });
  setTimeout(
    () => crash(new Error('a query exceeded its time limit and could not be cancelled')),
    parentKillMs,
  );
}

async function waitUntil(deadline: number, isDone: () => boolean): Promise<boolean> {
  while (!isDone() && Date.now() < deadline) await sleep(20);
  return isDone();
}

async function stop(server: Server, lanes: QueryLanes, engine: Session): Promise<void> {
  const started = Date.now();
  // A thread, because closing the engine blocks the main thread (tried: minutes).
  new Worker(`setTimeout(() => process.kill(process.pid, 'SIGKILL'), ${exitTimeoutMs})`, {
    eval: true,
  }).unref();
  const closed = once(server.close(), 'close');
  const isIdle = (): boolean => lanes.countJobs() === 0;
  if (!(await waitUntil(started + finishTimeoutMs, isIdle))) {
    lanes.interruptAll();
    if (!(await waitUntil(started + interruptTimeoutMs, isIdle)))
      return void process.kill(process.pid, 'SIGKILL');
  }
  // Keep-alive connections would stay open.
  const idle = setInterval(() => server.closeIdleConnections(), 20);
  await waitAtMost(closed, flushTimeoutMs);
  clearInterval(idle);
  server.closeAllConnections();
  await lanes.close();
  engine.close();
  process.exit(0);
}

async function main(): Promise<void> {
  process.on('SIGINT', () => {});
  // The engine reads its time zone when it opens.
  process.env.TZ = 'UTC';
  const ending = new AbortController();
  const { signal } = ending;
  process.once('disconnect', () => ending.abort());
  if (!process.connected) return;
  const [options] = (await once(process, 'message', { signal })) as [ChildOptions];
  const handlers = { killQuery: (id: string) => killQuery(engine, id), reportOverrun, crash };
  const lanes = startLanes(options.dataDir, handlers);
  const engine = await openEngine(options).finally(lanes.loaded);
  process.on('uncaughtException', crash);
  process.on('SIGTERM', () => ending.abort());
  const server = createBridge({ ...options, lanes });
  await once(server.listen(options.port, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  sendToParent({ port });
  if (!signal.aborted) await once(signal, 'abort');
  await stop(server, lanes, engine).catch(crash);
}

main().catch((error: unknown) => {
  log(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
