import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { CommandHost } from '../../../src/cli/support/command.js';

/** Exit code and output of a command. */
export interface Ended {
  /** Null if a signal ended the command. `err` ends with the signal's name. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

type Environment = Readonly<Record<string, string>>;

const entryOf = (name: string): string => import.meta.resolve(`#bundle/cli-${name}.js`);

/** Runs a command in this process. Its output is not a terminal. */
export const runCommand = (name: string, env: Environment, ...args: string[]): Promise<Ended> =>
  runOn(false, name, env, ...args);

/** Like `runCommand`, with a terminal as output. */
export const runOnTerminal = (name: string, env: Environment, ...args: string[]): Promise<Ended> =>
  runOn(true, name, env, ...args);

type CommandMain = (argv: readonly string[], host: CommandHost) => Promise<void>;

async function runOn(isTTY: boolean, name: string, env: Environment, ...args: string[]): Promise<Ended> {
  const { main } = (await import(entryOf(name))) as { main: CommandMain };
  return runMain(main, env, args, isTTY);
}

/** Runs the main function of a command in this process. */
export async function runMain(
  main: CommandMain,
  env: Environment,
  args: readonly string[],
  isTTY = false,
): Promise<Ended> {
  const written = { out: '', err: '' };
  let code = 0;
  const host = Object.assign(new EventEmitter(), {
    env: { ...process.env, ...env },
    exitCode: 0,
    stdout: Object.assign(new EventEmitter(), {
      isTTY,
      write: (text: string, done?: () => void) => {
        written.out += text;
        done?.();
      },
    }),
    stderr: { write: (text: string) => (written.err += text) },
    exit: (wanted: number) => {
      code = wanted;
    },
  });
  await main(args, host);
  return { code: code || host.exitCode, ...written };
}

/** Starts a command in a child process, to send signals to it. The child is killed after the test. */
export function spawnCommand(t: TestContext, name: string, env: Environment, ...args: string[]) {
  const script = `import(${JSON.stringify(entryOf(name))}).then((m) => m.main(process.argv.slice(1)))`;
  const child = spawn(process.execPath, ['-e', script, '--', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

export async function endOf(child: ChildProcess): Promise<Ended> {
  const read = (stream: Readable | null) => (stream === null ? '' : text(stream));
  const [out, err, [code, signal]] = await Promise.all([
    read(child.stdout),
    read(child.stderr),
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { code, out, err: signal === null ? err : `${err}ended by ${signal}\n` };
}
