import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Session } from 'chdb';
import { within } from '../../lifecycle.js';
import type { ChildMessage, StartOptions } from '../clickhouse.js';
import { writeAccess } from './analyst.js';
import { createBridge } from './http.js';
import { type Lanes, startLanes } from './lanes.js';
import { overrunOf } from './overruns.js';
import { literal, quotedName } from './sql.js';

/* The embedded ClickHouse server. Receives StartOptions over Node's IPC channel; stops when that closes, or on SIGTERM. */

/** For all queries and merges together, beside what an analyst's may take. */
const serviceMemoryBytes = 4_000_000_000;
/** From the beginning of a stop: queries may finish, then end themselves, then the process ends. */
const finishMs = 3000;
const interruptedMs = 4000;
const deadlineMs = 4700;
const answersMs = 300;
/** How long the parent may take to kill this process for an overrun. */
const unheardMs = 1000;

function log(text: string): void {
  process.stderr.write(`clickhouse: ${text.replaceAll('\n', ' ').slice(0, 500)}\n`);
}

async function openEngine({ dataDir, readable, database, analystLimits }: StartOptions): Promise<Session> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const access = await writeAccess(dataDir, readable);
  const memory = serviceMemoryBytes + analystLimits.memoryBytes;
  const connectionArgs = [`--max_server_memory_usage=${memory}`, `--config-file=${access}`];
  let session: Session;
  try {
    session = new Session(dataDir, { connectionArgs });
  } catch (cause) {
    // The engine writes its own reason (locked, no permission) to stderr; its exception has none.
    const reason = 'in use by another server, or not accessible';
    throw new Error(`cannot open the data folder ${dataDir}: ${reason}`, { cause });
  }
  await session.queryAsync(`CREATE DATABASE IF NOT EXISTS ${quotedName(database)}`);
  return session;
}

/** A synchronous call on purpose: an asynchronous one waits for a pool thread, and all may be busy. */
function killQuery(engine: Session, id: string): void {
  engine.query(`KILL QUERY WHERE Settings['log_comment'] = ${literal(id)} ASYNC`);
}

/** A defect, or a lost engine thread: an ordinary exit would wait for the running queries (tried: minutes). */
function crash(error: Error): void {
  log(error.message);
  process.kill(process.pid, 'SIGKILL');
}

const tellParent = (message: ChildMessage): unknown =>
  process.send?.(message, undefined, undefined, () => {});

/** Who counts restarts hears it so, and does the killing; by itself only where nobody listens. */
function reportOverrun(statement: string): void {
  tellParent({ overrun: overrunOf(statement, Date.now()) });
  setTimeout(() => crash(new Error('a query outlived its limit')), unheardMs);
}

async function isDoneBy(byTime: number, isDone: () => boolean): Promise<boolean> {
  while (!isDone() && Date.now() < byTime) await sleep(20);
  return isDone();
}

/** Lets running queries finish for 3 s, then interrupts them; one that cannot be ends with the process. */
async function stop(server: Server, lanes: Lanes, engine: Session): Promise<void> {
  const started = Date.now();
  // A thread of its own ends the process: closing the engine blocks the main one (tried: minutes).
  new Worker(`setTimeout(() => process.kill(process.pid, 'SIGKILL'), ${deadlineMs})`, { eval: true }).unref();
  const closed = once(server.close(), 'close');
  const isIdle = (): boolean => lanes.active() === 0;
  if (!(await isDoneBy(started + finishMs, isIdle))) {
    lanes.interruptAll();
    if (!(await isDoneBy(started + interruptedMs, isIdle))) return void process.kill(process.pid, 'SIGKILL');
  }
  // Lets answers reach their sockets; keep-alive connections would otherwise stay open.
  const idle = setInterval(() => server.closeIdleConnections(), 20);
  await within(closed, answersMs);
  clearInterval(idle);
  server.closeAllConnections();
  await lanes.close();
  engine.close();
  process.exit(0);
}

async function main(): Promise<void> {
  process.on('SIGINT', () => {});
  // The engine takes its time zone from here when it opens; ClickHouse servers run in UTC.
  process.env.TZ = 'UTC';
  const ending = new AbortController();
  const { signal } = ending;
  // Opening the engine takes its time: the parent may be gone meanwhile.
  process.once('disconnect', () => ending.abort());
  if (!process.connected) return;
  const [options] = (await once(process, 'message', { signal })) as [StartOptions];
  // Before the engine: its threads load while the data folder is opened.
  const endings = { kill: (id: string) => killQuery(engine, id), overrun: reportOverrun, crash };
  const lanes = startLanes(options.dataDir, endings);
  const engine = await openEngine(options).finally(lanes.loaded);
  process.on('uncaughtException', crash);
  process.on('SIGTERM', () => ending.abort());
  const server = createBridge({ ...options, lanes });
  await once(server.listen(options.port, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  tellParent({ port });
  if (!signal.aborted) await once(signal, 'abort');
  await stop(server, lanes, engine).catch(crash);
}

main().catch((error: unknown) => {
  log(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
