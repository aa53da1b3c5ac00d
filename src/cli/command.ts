/** What the command line tools have in common: settings, signals, the way they end. */
import { type Config, loadConfig } from '../config.js';
import { ApiError } from '../errors.js';
import {
  type Closers,
  createClosers,
  type Host,
  installShutdown,
  reportStartFailure,
  StartError,
} from '../lifecycle.js';
import { createLogger, type Logger } from '../telemetry.js';

/** What a command has of its process: `process` itself, except in tests, which keep what is written. */
export type CommandHost = Host & {
  exitCode?: number | string | null | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output;
  readonly stderr: Output & { readonly isTTY?: boolean; readonly columns?: number };
};

interface Output {
  write(text: string): unknown;
}

export interface CommandContext extends Pick<CommandHost, 'stdout' | 'stderr'> {
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

/** The whole life of a command. @returns its `main`, which takes the arguments after the command */
export const commandOf =
  <Arguments>(command: Command<Arguments>) =>
  async (argv: readonly string[], host: CommandHost = process): Promise<void> => {
    const { name, help, read, work, failure = 1 } = command;
    let args: Arguments | null;
    try {
      args = read(argv);
    } catch (error) {
      reportStartFailure(error, createLogger('info', name, host.stderr), host.stderr);
      host.exitCode = failure;
      return;
    }
    if (args === null) {
      host.stdout.write(help);
      return;
    }
    const wanted = args;
    await runCommand(host, name, failure, (context) => work(context, wanted));
  };

/** A shell calls the end by a signal 128 and its number; an unfinished command has not succeeded. */
const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Runs a command to its end, or until a signal stops it, and closes what it opened.
 *
 * @param work does it; a StartError is printed as one line, everything else is a defect
 */
async function runCommand(
  host: CommandHost,
  name: string,
  failure: number,
  work: (context: CommandContext) => Promise<void>,
): Promise<void> {
  const { stdout, stderr, env } = host;
  let exitCode = 0;
  let result = 0;
  const endWith = (code: number): void => {
    result = code;
  };
  const ending = {
    on: host.on.bind(host),
    exit: (code: number) => host.exit(code === 0 ? exitCode : code),
  };
  const startLogger = createLogger('info', name, stderr);
  for (const [signal, code] of Object.entries(signalExitCodes)) {
    host.on(signal, () => {
      exitCode = code;
    });
  }
  const closingLogger = createLogger('info', name, stderr);
  const closers = createClosers(closingLogger);
  const shutdown = installShutdown(createLogger('warn', name, stderr), closers, ending);
  try {
    const config = loadConfig(env);
    // The service's everyday lines would stand between the command's own.
    const logger = createLogger(config.logLevel === 'info' ? 'warn' : config.logLevel, name, stderr);
    await work({ config, logger, closers, endWith, stdout, stderr });
    await shutdown(result);
  } catch (error) {
    // A stop ends connections whose failure is then no news.
    if (!closers.closing) {
      reportStartFailure(forUser(error), startLogger, stderr);
      // Where Redis is away, closers run into their limits; the user has read why.
      closingLogger.level = 'silent';
    }
    await shutdown(failure);
  }
}

/** The message of an error that callers of the service see is fit for the user of a command, too. */
const forUser = (error: unknown): unknown =>
  error instanceof ApiError ? new StartError(error.message, { cause: error }) : error;

export interface Progress {
  /** Shows a text until the next one; '' clears the line. */
  show(text: string): void;
}

/** A line on the terminal; nothing where standard error is none. */
export function createProgress({ stderr, closers }: Pick<CommandContext, 'stderr' | 'closers'>): Progress {
  if (!stderr.isTTY) return { show: () => undefined };
  const show = (text: string): void => {
    stderr.write(`\r\x1b[K${text.slice(0, (stderr.columns || 80) - 1)}`);
  };
  closers.add('progress line', () => show(''));
  return { show };
}
