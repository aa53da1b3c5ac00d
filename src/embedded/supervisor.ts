import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeConnectionError } from '../connection-problem.js';
import type { Logger } from '../logger.js';
import { hasCode } from './private-file.js';

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
  whyEnded?(): string | null;
};

export type ServerOptions = {
  dir: string;
  /** The same after a restart. */
  port: number;
  logger: Logger;
  onSpawn?: (pid: number) => void;
};

export type Supervised = {
  /** Rejects if the first start failed. */
  readonly ready: Promise<void>;
  pid(): number | undefined;
  /** Sends SIGTERM, and SIGKILL shortly before `limitMs`. */
  stop(limitMs: number): Promise<void>;
};

const healthyMs = 10_000;
const killMarginMs = 250;

type Life = ReturnType<typeof begin>;

/** Restarts the child until `stop`, but not after a failed first start. */
export function supervise(spec: ChildSpec): Supervised {
  const { name, logger, minDelayMs = 100, maxDelayMs = 5_000 } = spec;
  const stopping = new AbortController();
  let life: Life | undefined;

  async function launch(): Promise<Life> {
    const born = begin(spec.spawn());
    life = born;
    const { child, over, ended } = born;
    // Without file descriptors, a child lacks the streams that `ready` needs.
    if (child.pid !== undefined) {
      if (stopping.signal.aborted) child.kill('SIGTERM');
      try {
        await Promise.race([spec.ready(child, over.signal), ended]);
        if (!over.signal.aborted) return born;
      } catch (error) {
        if (!over.signal.aborted) {
          await terminate(born, 0);
          throw error;
        }
      }
    }
    const cause = await ended;
    if (cause !== null)
      throw new Error(`${name} cannot be started: ${describeConnectionError(cause).text}`, { cause });
    const log = spec.logFile === undefined ? '' : `; see ${spec.logFile}`;
    throw new Error(`${name} ended before it was ready: ${lastWords(child)}${log}`);
  }

  async function keepAlive(first: Life): Promise<void> {
    let current: Life | null = first;
    for (let delay = minDelayMs; !stopping.signal.aborted; delay = Math.min(delay * 2, maxDelayMs)) {
      let delayMs = delay;
      if (current !== null) {
        const since = performance.now();
        await current.ended;
        if (stopping.signal.aborted) return;
        const why = spec.whyEnded?.() ?? null;
        if (why !== null || performance.now() - since > healthyMs) delay = minDelayMs;
        delayMs = why === null ? delay : 0;
        logger.warn({ delayMs }, `${name} ${why ?? `died (${lastWords(current.child)})`}, starting it again`);
      }
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      current = await launch().catch((error: unknown) => {
        if (!stopping.signal.aborted) logger.error({ err: error }, `${name} did not start again`);
        return null;
      });
      if (current !== null) logger.info({ pid: current.child.pid }, `${name} runs again`);
    }
  }

  const firstLife = launch();
  const kept = firstLife.then(keepAlive, () => undefined);
  const ready = firstLife.then(() => undefined);
  ready.catch(() => undefined);
  return {
    ready,
    pid: () => life?.child.pid,
    async stop(limitMs) {
      stopping.abort();
      if (life !== undefined) await terminate(life, limitMs);
      await kept;
    },
  };
}

function begin(child: ChildProcess) {
  const over = new AbortController();
  /** Null: it ran. */
  const ended = new Promise<Error | null>((resolve) => {
    child.once('exit', () => resolve(null));
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(error); // no exit follows
    });
  }).then((failure) => {
    over.abort();
    endGroup(child);
    return failure;
  });
  return { child, ended, over };
}

/** The group's id stays taken while a member lives. */
function endGroup(child: ChildProcess): void {
  if (child.pid !== undefined) sendSignal(-child.pid, 'SIGKILL');
  for (const stream of child.stdio ?? []) stream?.destroy();
}

async function terminate(life: Life, limitMs: number): Promise<void> {
  life.over.abort();
  life.child.kill('SIGTERM');
  const timer = setTimeout(() => life.child.kill('SIGKILL'), Math.max(0, limitMs - killMarginMs));
  await life.ended;
  clearTimeout(timer);
}

/** @returns false if the process or group has ended */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    // macOS reports EPERM for a group of zombies.
    if (hasCode(error, 'ESRCH', 'EPERM')) return false;
    throw error;
  }
}

const lastWords = (child: ChildProcess): string =>
  child.signalCode === null ? `exit code ${child.exitCode}` : `signal ${child.signalCode}`;
