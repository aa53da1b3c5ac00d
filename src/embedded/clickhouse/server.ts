import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { Session } from 'chdb';
import { writeAccess } from './analyst-role.js';
import { type Account, createBridge } from './http-server.js';
import { type Lanes, startLanes } from './lanes.js';
import { type Overrun, overrunOf } from './overruns.js';
import { literal, quotedName } from './sql.js';

/*
 * The embedded ClickHouse server: one process, one data folder, the ClickHouse HTTP interface on
 * loopback. First line on stdin: StartOptions as JSON. First line on stdout: {"port":…}; a second one, {"overrun":…}, asks
 * to be killed and started again. It stops when stdin ends or on SIGTERM.
 */
interface StartOptions {
  readonly dataDir: string;
  readonly port: number;
  readonly database: string;
  readonly accounts: readonly Account[];
  /** What analysts may read, as GRANT has it. */
  readonly readable: readonly string[];
  /** Those that earlier processes told. */
  readonly overruns: readonly Overrun[];
}

/** Bound on all queries and merges together. */
const engineMemoryBytes = 6_000_000_000;
const finishMs = 3000;
const interruptedMs = 4000;
const deadlineMs = 4700;
const unheardMs = 1000;

function log(text: string): void {
  process.stderr.write(`clickhouse: ${text.replaceAll('\n', ' ').slice(0, 500)}\n`);
}

function fail(error: unknown): never {
  log(error instanceof Error ? error.message : String(error));
  process.exit(1);
}

async function firstLine(lines: AsyncIterator<string>): Promise<StartOptions> {
  const { value, done } = await lines.next();
  if (done) throw new Error('stdin ended before the options came');
  return JSON.parse(value) as StartOptions;
}

/** The engine writes its own reason (locked, no permission) to stderr; its exception has none. */
function openSession(dataDir: string, accessFile: string): Session {
  const connectionArgs = [`--max_server_memory_usage=${engineMemoryBytes}`, `--config-file=${accessFile}`];
  try {
    return new Session(dataDir, { connectionArgs });
  } catch (error) {
    const cause = { cause: error };
    throw new Error(
      `cannot open the data folder ${dataDir}: in use by another server, or not accessible`,
      cause,
    );
  }
}

async function openEngine(options: StartOptions): Promise<Session> {
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  const access = await writeAccess(options.dataDir, options.readable);
  const session = openSession(options.dataDir, access);
  await session.queryAsync(`CREATE DATABASE IF NOT EXISTS ${quotedName(options.database)}`);
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

/** Who counts restarts does it from this line, so it is they who kill; by itself only where nobody listens. */
function tellOverrun(statement: string): void {
  process.stdout.write(`${JSON.stringify({ overrun: overrunOf(statement, Date.now()) })}\n`);
  setTimeout(() => crash(new Error('a query outlived its limit')), unheardMs);
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}

async function idle(lanes: Lanes, byTime: number): Promise<boolean> {
  while (lanes.active() > 0 && Date.now() < byTime) await new Promise((resolve) => setTimeout(resolve, 20));
  return lanes.active() === 0;
}

/** Lets answers reach their sockets; keep-alive connections would otherwise stay open. */
async function closeServer(server: Server, closed: Promise<void>, byTime: number): Promise<void> {
  let isClosed = false;
  closed.then(() => {
    isClosed = true;
  });
  while (!isClosed && Date.now() < byTime) {
    server.closeIdleConnections();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  server.closeAllConnections();
}

/** Ends the process from a thread of its own: closing the engine blocks the main one (tried: minutes). */
function startWatchdog(): void {
  const code = `setTimeout(() => process.kill(process.pid, 'SIGKILL'), ${deadlineMs})`;
  new Worker(code, { eval: true }).unref();
}

/** Lets running queries finish for 3 s, then interrupts them; one that cannot be ends with the process. */
async function stop(server: Server, lanes: Lanes, engine: Session): Promise<void> {
  const started = Date.now();
  startWatchdog();
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  if (!(await idle(lanes, started + finishMs))) {
    lanes.interruptAll();
    if (!(await idle(lanes, started + interruptedMs))) return void process.kill(process.pid, 'SIGKILL');
  }
  await closeServer(server, closed, Date.now() + 300);
  await lanes.close();
  engine.close();
  process.exit(0);
}

async function main(): Promise<void> {
  process.on('SIGINT', () => {});
  // The engine takes its time zone from here when it opens; ClickHouse servers run in UTC.
  process.env.TZ = 'UTC';
  const input = createInterface({ input: process.stdin });
  let orphaned = false;
  // Opening the engine takes its time: the parent may be gone before anything else listens for it.
  input.once('close', () => {
    orphaned = true;
  });
  const lines = input[Symbol.asyncIterator]();
  const options = await firstLine(lines);
  // Before the engine: its threads load while the data folder is opened.
  const endings = { kill: (id: string) => killQuery(engine, id), overrun: tellOverrun, crash };
  const lanes = startLanes(options.dataDir, endings);
  const engine = await openEngine(options).finally(lanes.loaded);
  process.on('uncaughtException', crash);
  const server = createBridge({ ...options, lanes });
  let stopping = false;
  const stopOnce = (): void => {
    if (stopping) return;
    stopping = true;
    stop(server, lanes, engine).catch(crash);
  };
  process.on('SIGTERM', stopOnce);
  input.once('close', stopOnce);
  const port = await listen(server, options.port);
  if (orphaned) return stopOnce();
  process.stdout.write(`${JSON.stringify({ port })}\n`);
}

main().catch(fail);
