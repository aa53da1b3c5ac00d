import type { Logger } from './logger.js';

/** The user can fix the cause: only the message is printed. */
export class StartError extends Error {
  override readonly name: string = 'StartError';
}

/** @throws Error after `ms` */
export function withTimeout<Value>(work: Promise<Value>, ms: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${Math.round(ms)} ms`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Ignores errors of the work. */
export async function waitAtMost(work: Promise<unknown>, ms: number): Promise<void> {
  await withTimeout(work, ms).catch(() => undefined);
}

/** After `limitMs`, the next closer runs without waiting for this one. */
export type Closer = (limitMs: number) => Promise<unknown> | unknown;

export type Closers = ReturnType<typeof createClosers>;

/** Leaves 0.5 s of 10 s for the exit. */
const closeDeadlineMs = 9_500;
/** npm and the terminal both forward one Ctrl-C. */
const duplicateSignalMs = 1_000;

/** @param deadlineMs for all together. Each may use half of the rest, the last one all. */
export function createClosers(logger: Logger, deadlineMs = closeDeadlineMs) {
  const stack: { name: string; close: Closer }[] = [];
  let closing: Promise<boolean> | undefined;

  async function closeAll(): Promise<boolean> {
    const deadline = performance.now() + deadlineMs;
    let clean = true;
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const left = Math.max(0, deadline - performance.now());
      clean = (await closeOne(next.name, next.close, stack.length === 0 ? left : left / 2, logger)) && clean;
    }
    return clean;
  }

  return {
    /** Call it right after the resource was created. During `close` the closer runs immediately. */
    add(name: string, close: Closer): void {
      stack.push({ name, close });
      // `closeAll` may have ended already.
      if (closing !== undefined) closing = closing.then(async (clean) => (await closeAll()) && clean);
    },
    /**
     * Runs all closers, newest first. Never rejects: logs failures and timeouts, and continues.
     * @returns whether all succeeded; the same promise on every call
     */
    close(): Promise<boolean> {
      closing ??= closeAll();
      return closing;
    },
    get closing(): boolean {
      return closing !== undefined;
    },
  };
}

async function closeOne(name: string, close: Closer, limitMs: number, logger: Logger): Promise<boolean> {
  try {
    await withTimeout(Promise.resolve(close(limitMs)), limitMs);
    return true;
  } catch (error) {
    logger.error({ err: error, closer: name }, 'a shutdown step failed');
    return false;
  }
}

export type ShutdownHost = Pick<NodeJS.EventEmitter, 'on'> & { exit(code: number): unknown };

/**
 * The first SIGTERM or SIGINT closes everything and exits with 0, or 1 if a closer failed. Signals in the
 * next second are ignored; later ones exit immediately with 1. Uncaught errors close everything and exit with
 * 1.
 */
export function installShutdown(
  logger: Logger,
  closers: Closers,
  host: ShutdownHost = process,
  now: () => number = () => performance.now(),
): (exitCode: number) => Promise<void> {
  let running: Promise<void> | undefined;
  let firstSignalAt: number | undefined;
  const shutdown = (exitCode: number): Promise<void> => {
    running ??= closers.close().then((clean) => void host.exit(clean ? exitCode : 1));
    return running;
  };
  for (const signal of ['SIGTERM', 'SIGINT']) {
    host.on(signal, () => {
      if (firstSignalAt === undefined) {
        firstSignalAt = now();
        logger.info({ signal }, 'shutting down');
        void shutdown(0);
      } else if (now() - firstSignalAt >= duplicateSignalMs) {
        logger.warn({ signal }, 'second signal: exiting immediately');
        host.exit(1);
      }
    });
  }
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    host.on(event, (error: unknown) => {
      logger.fatal({ err: error }, 'uncaught error; the service stops');
      void shutdown(1);
    });
  }
  return shutdown;
}

/** If `start` fails, closes everything and exits with 1. */
export async function runProcess(logger: Logger, start: (closers: Closers) => Promise<void>): Promise<void> {
  const closers = createClosers(logger);
  const shutdown = installShutdown(logger, closers);
  try {
    await start(closers);
  } catch (error) {
    // A stop during startup causes such errors.
    if (!closers.closing) reportStartFailure(error, logger);
    await shutdown(1);
  }
}

export function reportStartFailure(
  error: unknown,
  logger: Logger,
  stderr: { write(text: string): unknown } = process.stderr,
): void {
  if (error instanceof StartError) stderr.write(`${error.message}\n`);
  else logger.fatal({ err: error }, 'startup failed');
}
