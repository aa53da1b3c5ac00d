/** What the command line tools have in common: settings, signals, the way they end. */
import { type Config, loadConfig } from '../config.js';
import { ApiError } from '../errors.js';
import {
  type Closers,
  createClosers,
  installShutdown,
  reportStartFailure,
  StartError,
} from '../lifecycle.js';
import { connectRedis, type RedisClient, whenReady } from '../store/client.js';
import { createLogger, type Logger } from '../telemetry.js';

export interface CommandContext {
  readonly config: Config;
  readonly logger: Logger;
  readonly closers: Closers;
  /** What the command ends with when its work is done: 0, unless this says otherwise. */
  readonly endWith: (exitCode: number) => void;
}

/** A command: its name, its help, and how it reads its arguments (null: help was asked for) and does its work. */
export interface Command<Arguments> {
  readonly name: string;
  readonly help: string;
  /** @throws StartError */
  readonly read: (argv: readonly string[]) => Arguments | null;
  readonly work: (context: CommandContext, args: Arguments) => Promise<void>;
  /** Exit code of a command that could not do its work, 1 by default. */
  readonly failure?: number;
}

/** The whole life of a command. */
export async function startCommand<Arguments>(
  { name, help, read, work, failure = 1 }: Command<Arguments>,
  argv: readonly string[],
): Promise<void> {
  let args: Arguments | null;
  try {
    args = read(argv);
  } catch (error) {
    reportStartFailure(error, createLogger('info', name));
    process.exitCode = failure;
    return;
  }
  if (args === null) {
    process.stdout.write(help);
    return;
  }
  const wanted = args;
  await runCommand(name, failure, (context) => work(context, wanted));
}

const redisTimeoutMs = 10_000;

/** A connection that lasts as long as the command. @throws StartError where Redis cannot be reached */
export async function openRedis(redisUrl: string, { logger, closers }: CommandContext): Promise<RedisClient> {
  const redis = connectRedis(redisUrl);
  closers.add('Redis connection', () => redis.disconnect());
  redis.on('error', (error) => logger.debug({ err: error }, 'Redis connection'));
  await whenReady(redis, redisTimeoutMs).catch((cause: unknown) => {
    throw new StartError('Redis cannot be reached; start it or correct REDIS_URL', { cause });
  });
  return redis;
}

/** A shell calls the end by a signal 128 and its number; an unfinished command has not succeeded. */
const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Runs a command to its end, or until a signal stops it, and closes what it opened.
 *
 * @param work does it; a StartError is told in one line, everything else is a defect
 */
async function runCommand(
  name: string,
  failure: number,
  work: (context: CommandContext) => Promise<void>,
): Promise<void> {
  let exitCode = 0;
  let result = 0;
  const endWith = (code: number): void => {
    result = code;
  };
  const host = {
    on: process.on.bind(process),
    exit: (code: number) => process.exit(code === 0 ? exitCode : code),
  };
  const startLogger = createLogger('info', name);
  for (const [signal, code] of Object.entries(signalExitCodes)) {
    process.on(signal, () => {
      exitCode = code;
    });
  }
  const closingLogger = createLogger('info', name);
  const closers = createClosers(closingLogger);
  const shutdown = installShutdown(createLogger('warn', name), closers, host);
  try {
    const config = loadConfig();
    // The service's everyday lines would stand between the command's own.
    const logger = createLogger(config.logLevel === 'info' ? 'warn' : config.logLevel, name);
    await work({ config, logger, closers, endWith });
    await shutdown(result);
  } catch (error) {
    // A stop ends connections whose failure is then no news.
    if (!closers.closing) {
      reportStartFailure(forUser(error), startLogger);
      // Where Redis is away, closers run into their limits; the user has read why.
      closingLogger.level = 'silent';
    }
    await shutdown(failure);
  }
}

/** What the service's callers may be told, the user of a command may be told too. */
const forUser = (error: unknown): unknown =>
  error instanceof ApiError ? new StartError(error.message, { cause: error }) : error;
