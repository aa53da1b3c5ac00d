/** The life of a command: settings, signals, what it prints, and how it ends. */
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

interface Output {
  write(text: string, written?: () => void): unknown;
}

/** What a command has of its process: `process` itself, except in tests, which keep what is written. */
export type CommandHost = Host & {
  exitCode?: number | string | null | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output & Pick<NodeJS.EventEmitter, 'once'> & { readonly isTTY?: boolean };
  readonly stderr: Output & { readonly isTTY?: boolean; readonly columns?: number };
};

export interface CommandContext extends Pick<CommandHost, 'env' | 'stderr'> {
  readonly config: Config;
  readonly logger: Logger;
  readonly closers: Closers;
  /** Whether somebody reads what is printed, and no file or program. */
  readonly isTerminal: boolean;
  /** Shows a text on the terminal until the next one; '' clears the line. */
  readonly showProgress: (text: string) => void;
  /** Clears the progress and writes the result to standard output. */
  readonly print: (result: string) => void;
  /** The exit code once the work is done, 0 by default. */
  readonly endWith: (exitCode: number) => void;
}

interface Command<Arguments> {
  readonly name: string;
  readonly help: string;
  /** @returns null where help is asked for. @throws StartError */
  readonly read: (argv: readonly string[]) => Arguments | null;
  /** A StartError is printed as one line, everything else is a defect. */
  readonly work: (context: CommandContext, args: Arguments) => Promise<void>;
  /** Exit code of a command that could not do its work, 1 by default. */
  readonly failure?: number;
}

/** @returns the command's `main`, which takes the arguments after its name */
export const commandOf =
  <Arguments>(command: Command<Arguments>) =>
  async (argv: readonly string[], host: CommandHost = process): Promise<void> => {
    const logger = createLogger('warn', command.name, host.stderr);
    try {
      const args = command.read(argv);
      if (args === null) host.stdout.write(command.help);
      else await runCommand(command, args, host, logger);
    } catch (error) {
      reportStartFailure(error, logger, host.stderr);
      host.exitCode = command.failure ?? 1;
    }
  };

/** A shell calls the end by a signal 128 and its number; an unfinished command has not succeeded. */
const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/** Runs a command to its end, or until a signal stops it, and closes what it opened. Never rejects. */
async function runCommand<Arguments>(
  { work, failure = 1 }: Command<Arguments>,
  args: Arguments,
  host: CommandHost,
  logger: Logger,
): Promise<void> {
  const { stdout, stderr } = host;
  let [signalCode, result] = [0, 0];
  for (const [signal, code] of Object.entries(signalExitCodes)) {
    host.on(signal, () => {
      signalCode = code;
    });
  }
  const closers = createClosers(logger);
  const shutdown = installShutdown(logger, closers, {
    on: host.on.bind(host),
    exit: (code) => host.exit(code === 0 ? signalCode : code),
  });
  const showProgress = progressLine(stderr);
  closers.add('progress line', () => showProgress(''));
  const print = (text: string): void => {
    showProgress('');
    stdout.write(`${text}\n`);
  };
  const endWith = (code: number): void => {
    result = code;
  };
  try {
    const config = loadConfig(host.env);
    // The service's everyday lines would stand between the command's own.
    if (config.logLevel !== 'info') logger.level = config.logLevel;
    const isTerminal = stdout.isTTY === true;
    const shown = { showProgress, print, endWith, stderr, isTerminal };
    await work({ config, logger, closers, env: host.env, ...shown }, args);
    await flush(stdout);
    await shutdown(result);
  } catch (error) {
    // A stop ends connections whose failure is then no news.
    if (!closers.closing) {
      showProgress('');
      // What callers of the service see is fit for the user of a command, too.
      const known = error instanceof ApiError ? new StartError(error.message, { cause: error }) : error;
      reportStartFailure(known, logger, stderr);
      // Where Redis is unavailable, closers run into their limits; the user has read why.
      logger.level = 'silent';
    }
    await shutdown(failure);
  }
}

/** An exit drops what a pipe has not taken yet. Resolves also if the reader has closed the pipe. */
const flush = (stdout: CommandHost['stdout']): Promise<void> =>
  new Promise((resolve) => {
    stdout.once('error', () => resolve());
    stdout.write('', resolve);
  });

function progressLine(stderr: CommandHost['stderr']): (text: string) => void {
  let isEmpty = true;
  return (text) => {
    if (!stderr.isTTY || (isEmpty && text === '')) return;
    isEmpty = text === '';
    stderr.write(`\r\x1b[K${text.slice(0, (stderr.columns || 80) - 1)}`);
  };
}
