import type { Logger } from './telemetry.js';

/** An error that the user can fix: only its message is printed. Other errors are defects, logged with their stack. */
export class StartError extends Error {
  override readonly name: string = 'StartError';
}

/** @throws Error after `ms` */
export function inTime<Value>(work: Promise<Value>, ms: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${Math.round(ms)} ms`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Waits for the work, at most `ms`. Ignores its failure. */
export async function within(work: Promise<unknown>, ms: number): Promise<void> {
  await inTime(work, ms).catch(() => undefined);
}

/** Ends a resource; `limitMs` is the time after which the next closer runs without waiting any longer. */
export type Closer = (limitMs: number) => Promise<unknown> | unknown;

export type Closers = ReturnType<typeof createClosers>;

/** Of 10 s from signal to exit; the rest is for the exit itself. */
const closeDeadlineMs = 9_500;
/** npm and the terminal both pass the same Ctrl-C on: within this time it is no wish to force. */
const sameSignalMs = 1_000;

/**
 * The closers of one process (or of one test).
 * @param deadlineMs for all together; each may use half of what is left, the last one all
 */
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
    /** Call it on the line after the resource was created. Once closing, the closer runs at once. */
    add(name: string, close: Closer): void {
      stack.push({ name, close });
      // After the end of closeAll nobody else would run it.
      if (closing !== undefined) closing = closing.then(async (clean) => (await closeAll()) && clean);
    },
    /**
     * Runs all closers, the newest first. Never rejects: a closer that fails or hangs is logged and stops no other.
     * @returns whether every closer ended well and in time; the same promise on every call
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
    await inTime(Promise.resolve(close(limitMs)), limitMs);
    return true;
  } catch (error) {
    logger.error({ err: error, closer: name }, 'closer failed');
    return false;
  }
}

/** What the shutdown needs of a process; `process` itself, except in tests. */
export type Host = Pick<NodeJS.EventEmitter, 'on'> & { exit(code: number): unknown };

/**
 * The first SIGTERM or SIGINT closes everything and exits with 0, or 1 if a closer failed. A signal within the next second is
 * ignored; a later one exits immediately with 1. An uncaught error is logged and closes everything with exit code 1.
 * @returns `shutdown(exitCode)`, which resolves after `exit` was called
 */
export function installShutdown(
  logger: Logger,
  closers: Closers,
  host: Host = process,
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
        logger.info({ signal }, 'stopping');
        void shutdown(0);
      } else if (now() - firstSignalAt >= sameSignalMs) {
        logger.warn({ signal }, 'second signal: exit at once');
        host.exit(1);
      }
    });
  }
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    host.on(event, (error: unknown) => {
      logger.fatal({ err: error }, 'uncaught error');
      void shutdown(1);
    });
  }
  return shutdown;
}

/** A failed start closes what was opened and exits with 1. @param start resolves when the process serves */
export async function runProcess(logger: Logger, start: (closers: Closers) => Promise<void>): Promise<void> {
  const closers = createClosers(logger);
  const shutdown = installShutdown(logger, closers);
  try {
    await start(closers);
  } catch (error) {
    // A stop during the start ends half-started servers, whose failure is then no news.
    if (!closers.closing) reportStartFailure(error, logger);
    await shutdown(1);
  }
}

/** Writes a StartError's message to standard error as it is, and logs anything else. */
export function reportStartFailure(
  error: unknown,
  logger: Logger,
  stderr: { write(text: string): unknown } = process.stderr,
): void {
  if (error instanceof StartError) stderr.write(`${error.message}\n`);
  else logger.fatal({ err: error }, 'start failed');
}
