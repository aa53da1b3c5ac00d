import { type Config, loadConfig } from '../../config.js';
import { ApiError } from '../../errors.js';
import {
  type Closers,
  createClosers,
  installShutdown,
  reportStartFailure,
  type ShutdownHost,
  StartError,
} from '../../lifecycle.js';
import { createLogger, type Logger } from '../../logger.js';

interface Output {
  write(text: string, written?: () => void): unknown;
}

/** `process`, except in tests. */
export type CommandHost = ShutdownHost & {
  exitCode?: number | string | null | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output & Pick<NodeJS.EventEmitter, 'once'> & { readonly isTTY?: boolean };
  readonly stderr: Output & { readonly isTTY?: boolean; readonly columns?: number };
};

export interface CommandContext extends Pick<CommandHost, 'env' | 'stderr'> {
  readonly config: Config;
  readonly logger: Logger;
  readonly closers: Closers;
  /** True if standard output is a terminal. */
  readonly isTerminal: boolean;
  /** '' clears the progress line. */
  readonly showProgress: (text: string) => void;
  readonly print: (result: string) => void;
  /** Default: 0. */
  readonly endWith: (exitCode: number) => void;
}

interface Command<Arguments> {
  readonly name: string;
  readonly help: string;
  /** @returns null for --help @throws StartError */
  readonly read: (argv: readonly string[]) => Arguments | null;
  /** The message of a StartError is printed. Other errors are defects. */
  readonly run: (context: CommandContext, args: Arguments) => Promise<void>;
  /** Default: 1. */
  readonly failureExitCode?: number;
}

export const defineCommand =
  <Arguments>(command: Command<Arguments>) =>
  async (argv: readonly string[], host: CommandHost = process): Promise<void> => {
    const logger = createLogger('warn', command.name, host.stderr);
    try {
      const args = command.read(argv);
      if (args === null) host.stdout.write(command.help);
      else await runCommand(command, args, host, logger);
    } catch (error) {
      reportStartFailure(error, logger, host.stderr);
      host.exitCode = command.failureExitCode ?? 1;
    }
  };

/** 128 plus the signal's number, as in a shell. */
const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/** Never rejects. Closes all resources after the end or a signal. */
async function runCommand<Arguments>(
  { run, failureExitCode = 1 }: Command<Arguments>,
  args: Arguments,
  host: CommandHost,
  logger: Logger,
): Promise<void> {
  const { stdout, stderr } = host;
  let [signalCode, resultExitCode] = [0, 0];
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
  const showProgress = createProgressLine(stderr);
  closers.add('progress line', () => showProgress(''));
  const print = (text: string): void => {
    showProgress('');
    stdout.write(`${text}\n`);
  };
  const endWith = (code: number): void => {
    resultExitCode = code;
  };
  try {
    const config = loadConfig(host.env);
    // Level info would mix log lines with the output.
    if (config.logLevel !== 'info') logger.level = config.logLevel;
    const isTerminal = stdout.isTTY === true;
    const shown = { showProgress, print, endWith, stderr, isTerminal };
    await run({ config, logger, closers, env: host.env, ...shown }, args);
    await flushOutput(stdout);
    await shutdown(resultExitCode);
  } catch (error) {
    if (!closers.closing) {
      showProgress('');
      const reported = error instanceof ApiError ? new StartError(error.message, { cause: error }) : error;
      reportStartFailure(reported, logger, stderr);
      // If Redis is down, closers time out. The reason is printed already.
      logger.level = 'silent';
    }
    await shutdown(failureExitCode);
  }
}

/** `exit` would discard output that a pipe has not accepted. Resolves also if the reader closed the pipe. */
const flushOutput = (stdout: CommandHost['stdout']): Promise<void> =>
  new Promise((resolve) => {
    stdout.once('error', () => resolve());
    stdout.write('', resolve);
  });

function createProgressLine(stderr: CommandHost['stderr']): (text: string) => void {
  let isEmpty = true;
  return (text) => {
    if (!stderr.isTTY || (isEmpty && text === '')) return;
    isEmpty = text === '';
    stderr.write(`\r\x1b[K${text.slice(0, (stderr.columns || 80) - 1)}`);
  };
}
