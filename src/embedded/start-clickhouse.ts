import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnalystLimits, defaultAnalystLimits } from '../contracts/settings/analyst-limits.js';
import { analystTables } from '../contracts/settings/analyst-tables.js';
import type { Logger } from '../logger.js';
import { resolveProgram } from '../programs.js';
import { hasErrorCode } from './private-file.js';
import { type ServerOptions, type SupervisedServer, supervise } from './supervisor.js';

export type ClickhouseExit = 'died' | 'analyst_query';

export type ClickhouseOptions = ServerOptions & {
  password: string;
  analystPassword: string;
  /** 0: normal priority. */
  niceness?: number;
  /** As in GRANT; default: the service's tables for analysts. */
  readableTables?: readonly string[];
  analystLimits?: AnalystLimits | undefined;
  onExit?: (reason: ClickhouseExit) => void;
};

export interface Account {
  readonly name: string;
  readonly password: string;
  readonly readonly: boolean;
}

/** An analyst's query that only a kill could end. */
export interface Overrun {
  /** Ignores strings, numbers, blanks and comments. */
  readonly shape: string;
  /** Without strings, which may name learners. */
  readonly query: string;
  readonly at: number;
}

export interface ChildOptions {
  readonly dataDir: string;
  readonly port: number;
  readonly database: string;
  readonly accounts: readonly Account[];
  readonly readableTables: readonly string[];
  readonly analystLimits: AnalystLimits;
  readonly overruns: readonly Overrun[];
}

export type ChildMessage = { readonly port: number } | { readonly overrun: Overrun };

const database = 'skilltrace';
const maxOverruns = 20;
/**
 * 15 halves the delay of requests by inserts and merges, but from 10 on the engine may starve
 * (docs/understand/performance.md).
 */
const defaultNiceness = 5;
const readyTimeoutMs = 120_000;

/**
 * Runs the ClickHouse engine and its HTTP interface on loopback in a child process, which exits when its IPC
 * channel closes.
 */
export function startClickhouse(
  options: ClickhouseOptions,
): SupervisedServer & { clickhouseUrl: string; analystUrl: string } {
  const { port, password, analystPassword, niceness = defaultNiceness, logger } = options;
  /** The next child rejects these statements. */
  const overruns: Overrun[] = [];
  let isOverrun = false;
  const recordOverrun = (overrun: Overrun): void => {
    overruns.splice(0, overruns.length - maxOverruns + 1);
    overruns.push(overrun);
    isOverrun = true;
    logger.error(
      { query: overrun.query },
      "an analyst's query exceeded its time limit and could not be cancelled; ClickHouse will be restarted",
    );
  };
  const server = supervise({
    name: 'embedded ClickHouse',
    logger,
    spawn() {
      const child = spawnChild(options, niceness, overruns);
      if (child.pid === undefined) return child;
      options.onSpawn?.(child.pid);
      if (niceness > 0) void lowerSessionPriority(child.pid, niceness, logger);
      return child;
    },
    ready: (child, signal) =>
      waitUntilListening(child, signal, (overrun) => {
        recordOverrun(overrun);
        // Kill it here, because a child that exits may lose its message.
        child.kill('SIGKILL');
      }),
    explainExit() {
      const why = isOverrun ? "was killed to end an analyst's query" : null;
      options.onExit?.(isOverrun ? 'analyst_query' : 'died');
      isOverrun = false;
      return why;
    },
  });
  const buildUrl = (account: string) => `http://${account}@127.0.0.1:${port}/${database}`;
  return {
    ...server,
    clickhouseUrl: buildUrl(`skilltrace:${password}`),
    analystUrl: buildUrl(`analyst:${analystPassword}`),
  };
}

function spawnChild(
  options: ClickhouseOptions,
  niceness: number,
  overruns: readonly Overrun[],
): ChildProcess {
  const { dir, port, password, analystPassword, readableTables, logger } = options;
  // nice(1) and env(1) become the child. Engine lanes and gzip need pool threads.
  const program = ['env', 'UV_THREADPOOL_SIZE=16', process.execPath, resolveProgram('clickhouse.js')];
  const stdio: StdioOptions = ['ignore', 'ignore', 'pipe', 'ipc'];
  const child = spawn('nice', ['-n', `${niceness}`, ...program], { detached: true, stdio });
  if (child.pid === undefined) return child;
  const settings: ChildOptions = {
    ...{ dataDir: dir, port, database, overruns },
    accounts: [
      { name: 'skilltrace', password, readonly: false },
      { name: 'analyst', password: analystPassword, readonly: true },
    ],
    readableTables: readableTables ?? analystTables.map((table) => `${database}.${table}`),
    analystLimits: options.analystLimits ?? defaultAnalystLimits,
  };
  // `ready` reports the exit of a dead child.
  child.send(settings, () => undefined);
  if (child.stderr !== null)
    createInterface({ input: child.stderr }).on('line', (line) => {
      // Other lines come from the engine.
      const isHarmless = line.trim() === '' || /"level":[123]0\b/.test(line);
      logger[isHarmless ? 'debug' : 'warn']({ child: child.pid }, `embedded ClickHouse: ${line}`);
    });
  return child;
}

/** Linux allows one change per 100 ms for all unprivileged processes (sched/autogroup.c). */
const autogroupRetryMs = 110;
const maxAutogroupAttempts = 10;

/** Linux schedules sessions before processes, and the child leads a session. */
async function lowerSessionPriority(pid: number, niceness: number, logger: Logger): Promise<void> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await writeFile(`/proc/${pid}/autogroup`, `${niceness}`);
    } catch (error) {
      if (!hasErrorCode(error, 'EAGAIN') || attempts === maxAutogroupAttempts)
        return logger.debug(
          { err: error },
          'embedded ClickHouse: the priority of its session cannot be lowered',
        );
    }
    await sleep(autogroupRetryMs);
  }
}

async function waitUntilListening(
  child: ChildProcess,
  signal: AbortSignal,
  onOverrun: (overrun: Overrun) => void,
): Promise<void> {
  child.on('message', (message: ChildMessage) => {
    if ('overrun' in message) onOverrun(message.overrun);
  });
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(readyTimeoutMs)]);
  await once(child, 'message', { signal: deadline }).catch(() => {
    signal.throwIfAborted();
    throw new Error(`embedded ClickHouse did not become ready within ${readyTimeoutMs / 1000} s`);
  });
}
