import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { analystTables } from '../contracts/analyst-tables.js';
import { programPath } from '../programs.js';
import type { Logger } from '../telemetry.js';
import { hasCode } from './error-code.js';
import { type Supervised, supervise } from './supervisor.js';

/** It died, or was ended because nothing else ended an analyst's query. */
export type ClickhouseEnd = 'died' | 'analyst_query';

export type ClickhouseOptions = {
  /** Folder of the engine's files, made when missing. */
  dir: string;
  /** Loopback port, kept over restarts. */
  port: number;
  /** Password of the account `skilltrace`, which may write. */
  password: string;
  /** Password of the account `analyst`, which may only read. */
  analystPassword: string;
  /** How far it steps back behind other processes; 0 where nothing else matters more. */
  niceness?: number;
  /** What the analyst may read, as GRANT has it; by default the tables of the service that are for analysts. */
  readable?: readonly string[];
  logger: Logger;
  /** Told at every end that nobody asked for. */
  onEnd?: (reason: ClickhouseEnd) => void;
  /** Told the process id at every start. */
  onSpawn?: (pid: number) => void;
};

const DATABASE = 'skilltrace';
/** More than decide anything. */
const OVERRUNS_KEPT = 20;
const CHILD = programPath('clickhouse.js');
/** Each engine lane may hold a thread of libuv's pool, and gzip needs some as well. */
const CHILD_ENVIRONMENT = ['UV_THREADPOOL_SIZE=16'];
/**
 * How far the engine steps back behind what answers requests, whom inserts and merges delay. With 15 they delayed them
 * half as much, but from 10 on the engine starves where other programs want the processor too (docs/performance.md).
 */
const NICENESS = 5;
/** Unless root writes, Linux takes one such change in 100 ms, of all processes together (sched/autogroup.c). */
const AUTOGROUP_MS = 110;
const AUTOGROUP_TRIES = 10;
/** Opening a large data folder takes its time. */
const READY_MS = 120_000;

/**
 * Starts the ClickHouse engine behind its HTTP interface on loopback and keeps it running.
 * It leads its own process group and ends by itself when its standard input does, so with this process.
 *
 * @returns the supervised server and its URLs; `ready` rejects when it cannot start
 */
export function startClickhouse(
  options: ClickhouseOptions,
): Supervised & { clickhouseUrl: string; analystUrl: string } {
  const { port, password, analystPassword, niceness = NICENESS, logger } = options;
  const overruns = keepOverruns(logger);
  const server = supervise({
    name: 'embedded ClickHouse',
    logger,
    spawn() {
      const child = spawnChild(options, niceness, overruns.kept);
      if (child.pid === undefined) return child;
      options.onSpawn?.(child.pid);
      if (niceness > 0) void stepBack(child.pid, niceness, options.logger);
      return child;
    },
    ready: (child, signal) => untilListening(child, signal, overruns.told),
    whyEnded() {
      const isOverrun = overruns.ended();
      options.onEnd?.(isOverrun ? 'analyst_query' : 'died');
      return isOverrun ? "was ended for an analyst's query" : null;
    },
  });
  const url = (user: string, secret: string) => `http://${user}:${secret}@127.0.0.1:${port}/${DATABASE}`;
  return {
    ...server,
    clickhouseUrl: url('skilltrace', password),
    analystUrl: url('analyst', analystPassword),
  };
}

/** As the child tells it (src/embedded/clickhouse/overruns.ts); `query` without the strings in it. */
type Overrun = { query: string };

/** The child decides by them whom it refuses, and its next one must know them. */
function keepOverruns(logger: Logger) {
  const kept: Overrun[] = [];
  let isEnding = false;
  return {
    kept,
    /** Kills the child, which asks for it: only so is it certain that its reason was read before its end. */
    told(child: ChildProcess, overrun: Overrun): void {
      kept.splice(0, kept.length - OVERRUNS_KEPT + 1);
      kept.push(overrun);
      isEnding = true;
      logger.error({ query: overrun.query }, "an analyst's query outlived its limit and could not be ended");
      child.kill('SIGKILL');
    },
    /** Whether the last end was for one; asked once. */
    ended(): boolean {
      const was = isEnding;
      isEnding = false;
      return was;
    },
  };
}

function spawnChild(
  options: ClickhouseOptions,
  niceness: number,
  overruns: readonly Overrun[],
): ChildProcess {
  // nice(1) and env(1) set what must be known before Node starts, and then become the child.
  const words = ['-n', `${niceness}`, 'env', ...CHILD_ENVIRONMENT, process.execPath, CHILD];
  const child = spawn('nice', words, {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  if (child.pid === undefined) return child;
  const settings = {
    dataDir: options.dir,
    port: options.port,
    database: DATABASE,
    accounts: [
      { name: 'skilltrace', password: options.password, readonly: false },
      { name: 'analyst', password: options.analystPassword, readonly: true },
    ],
    readable: options.readable ?? analystTables.map((table) => `${DATABASE}.${table}`),
    overruns,
  };
  // A child that died already is reported by its exit; the broken pipe says nothing more.
  child.stdin.on('error', (error) => options.logger.debug({ err: error }, 'embedded ClickHouse: stdin'));
  // Left open: its end tells the child that this process is gone.
  child.stdin.write(`${JSON.stringify(settings)}\n`);
  passLogOn(child, options.logger);
  return child;
}

/** Linux shares the processor between sessions before it looks at processes, and the child leads a session. */
async function stepBack(pid: number, niceness: number, logger: Logger): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await writeFile(`/proc/${pid}/autogroup`, `${niceness}`);
    } catch (error) {
      if (!hasCode(error, 'EAGAIN') || tries === AUTOGROUP_TRIES) {
        return logger.debug({ err: error }, 'embedded ClickHouse: this system does not share by sessions');
      }
    }
    await sleep(AUTOGROUP_MS);
  }
}

function passLogOn(child: ChildProcess, logger: Logger): void {
  if (child.stderr === null) return;
  createInterface({ input: child.stderr }).on('line', (line) => {
    // The child logs JSON lines; anything else is the engine's own complaint.
    const harmless = line.trim() === '' || /"level":[123]0\b/.test(line);
    logger[harmless ? 'debug' : 'warn']({ child: child.pid }, `embedded ClickHouse: ${line}`);
  });
}

/** The child's first line on standard output says that it serves, another one that it has to be ended. */
async function untilListening(
  child: ChildProcess,
  signal: AbortSignal,
  onOverrun: (child: ChildProcess, overrun: Overrun) => void,
): Promise<void> {
  if (child.stdout === null) throw new Error('embedded ClickHouse has no standard output');
  const lines = createInterface({ input: child.stdout });
  let timer: NodeJS.Timeout | undefined;
  const listening = new Promise<void>((resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`embedded ClickHouse is not ready after ${READY_MS / 1000} s`));
    }, READY_MS);
    signal.addEventListener('abort', () => reject(signal.reason));
    lines.on('line', (line) => {
      if (line.startsWith('{"overrun":'))
        onOverrun(child, (JSON.parse(line) as { overrun: Overrun }).overrun);
      else resolve();
    });
  });
  await listening.finally(() => clearTimeout(timer));
}
