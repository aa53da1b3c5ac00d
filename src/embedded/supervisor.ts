import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeConnectionError } from '../connection-problem.js';
import type { Logger } from '../logger.js';
import { hasErrorCode } from './private-file.js';

export type ChildSpec = {
  name: string;
  /** A failed start has no `pid` and perhaps no streams. */
  spawn(): ChildProcess;
  /** Rejects on failure or `signal`. */
  ready(child: ChildProcess, signal: AbortSignal): Promise<void>;
  logger: Logger;
  logFile?: string;
  /** Doubles up to `maxDelayMs`. */
  minDelayMs?: number;
  maxDelayMs?: number;
  /**
   * Called after an end without `stop`. @returns why the owner killed the child (restart immediately), or
   * null
   */
  explainExit?(): string | null;
};

export type ServerOptions = {
  dir: string;
  /** The same after a restart. */
  port: number;
  logger: Logger;
  onSpawn?: (pid: number) => void;
};

export type SupervisedServer = {
  /** Rejects if the first start failed. */
  readonly ready: Promise<void>;
  pid(): number | undefined;
  /** Sends SIGTERM, and SIGKILL shortly before `limitMs`. */
  stop(limitMs: number): Promise<void>;
};

/** After this uptime, the next restart has the first delay again. */
const healthyMs = 10_000;
const killMarginMs = 250;

type ChildRun = ReturnType<typeof trackChild>;

/** Restarts the child until `stop`, but not after a failed first start. */
export function supervise(spec: ChildSpec): SupervisedServer {
  const { name, logger, minDelayMs = 100, maxDelayMs = 5_000 } = spec;
  const stopping = new AbortController();
  let currentRun: ChildRun | undefined;

  async function launch(): Promise<ChildRun> {
    const run = trackChild(spec.spawn());
    currentRun = run;
    const { child, ending, exited } = run;
    // Without file descriptors, a child lacks the streams that `ready` needs.
    if (child.pid !== undefined) {
      if (stopping.signal.aborted) child.kill('SIGTERM');
      try {
        await Promise.race([spec.ready(child, ending.signal), exited]);
        if (!ending.signal.aborted) return run;
      } catch (error) {
        if (!ending.signal.aborted) {
          await terminate(run, 0);
          throw error;
        }
      }
    }
    const cause = await exited;
    if (cause !== null)
      throw new Error(`${name} cannot be started: ${describeConnectionError(cause).text}`, { cause });
    const log = spec.logFile === undefined ? '' : `; see ${spec.logFile}`;
    throw new Error(`${name} exited before it was ready: ${describeExit(child)}${log}`);
  }

  async function restartUntilStopped(first: ChildRun): Promise<void> {
    let current: ChildRun | null = first;
    for (let delay = minDelayMs; !stopping.signal.aborted; delay = Math.min(delay * 2, maxDelayMs)) {
      let delayMs = delay;
      if (current !== null) {
        const since = performance.now();
        await current.exited;
        if (stopping.signal.aborted) return;
        const explanation = spec.explainExit?.() ?? null;
        if (explanation !== null || performance.now() - since > healthyMs) delay = minDelayMs;
        delayMs = explanation === null ? delay : 0;
        logger.warn(
          { delayMs },
          `${name} ${explanation ?? `exited unexpectedly (${describeExit(current.child)})`}; restarting it`,
        );
      }
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      current = await launch().catch((error: unknown) => {
        if (!stopping.signal.aborted)
          logger.error({ err: error }, `${name} could not be restarted; retrying`);
        return null;
      });
      if (current !== null) logger.info({ child: current.child.pid }, `${name} is running again`);
    }
  }

  const firstRun = launch();
  const supervision = firstRun.then(restartUntilStopped, () => undefined);
  const ready = firstRun.then(() => undefined);
  // Prevents an unhandled rejection before a caller awaits `ready`.
  ready.catch(() => undefined);
  return {
    ready,
    pid: () => currentRun?.child.pid,
    async stop(limitMs) {
      stopping.abort();
      if (currentRun !== undefined) await terminate(currentRun, limitMs);
      await supervision;
    },
  };
}

function trackChild(child: ChildProcess) {
  const ending = new AbortController();
  /** Null: it ran. */
  const exited = new Promise<Error | null>((resolve) => {
    child.once('exit', () => resolve(null));
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(error); // no exit follows
    });
  }).then((failure) => {
    ending.abort();
    killGroup(child);
    return failure;
  });
  return { child, exited, ending };
}

/** The group's id stays taken while a member lives. */
function killGroup(child: ChildProcess): void {
  if (child.pid !== undefined) sendSignal(-child.pid, 'SIGKILL');
  for (const stream of child.stdio ?? []) stream?.destroy();
}

async function terminate(run: ChildRun, limitMs: number): Promise<void> {
  run.ending.abort();
  run.child.kill('SIGTERM');
  const timer = setTimeout(() => run.child.kill('SIGKILL'), Math.max(0, limitMs - killMarginMs));
  await run.exited;
  clearTimeout(timer);
}

/** @returns false if the process or group has ended */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    // macOS reports EPERM for a group of zombies.
    if (hasErrorCode(error, 'ESRCH', 'EPERM')) return false;
    throw error;
  }
}

const describeExit = (child: ChildProcess): string =>
  child.signalCode === null ? `exit code ${child.exitCode}` : `signal ${child.signalCode}`;
