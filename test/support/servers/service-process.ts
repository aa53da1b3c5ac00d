/** The service in a separate process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { waitFor } from '../wait.js';
import type { Scoped } from './service.js';

const mainBundle = import.meta.resolve('#bundle/main.js');
/** A program for `node -e` that starts the bundled service. */
export const serviceProgram = `import(${JSON.stringify(mainBundle)}).then(({ main }) => main([]));`;

type Settings = Readonly<Record<string, string>>;

/** A process that may fail to start. */
export interface Running {
  readonly child: ChildProcess;
  /** stdout and stderr so far. */
  written(): string;
  /** Resolves when the process has ended and all its output has been read. Sends the signal first. */
  ended(signal?: NodeJS.Signals): Promise<void>;
}

export interface Launched extends Running {
  readonly port: number;
  stop(): Promise<void>;
}

/** Environment variables of this process without settings of the service. */
export const environment = (): Record<string, string | undefined> => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
});

/** Starts the service, which ends with the test at the latest. */
export function runService(t: Scoped, settings: Settings): Running {
  const child = spawn(process.execPath, ['-e', serviceProgram], {
    env: { ...environment(), PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  let closed = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      text += chunk;
    });
  }
  child.once('close', () => {
    closed = true;
  });
  const ended = async (signal?: NodeJS.Signals): Promise<void> => {
    if (signal !== undefined) child.kill(signal);
    await waitFor('the end of the service', () => closed);
  };
  t.after(() => ended('SIGKILL'));
  return { child, written: () => text, ended };
}

/** Starts the service and waits until it listens. */
export async function launchService(t: Scoped, settings: Settings): Promise<Launched> {
  const running = runService(t, settings);
  const line = /Skilltrace listens on http:\/\/127\.0\.0\.1:(\d+)/;
  await waitFor('the start', () => {
    if (running.child.exitCode !== null) throw new Error(`the service ended: ${running.written()}`);
    return line.test(running.written());
  });
  const port = Number(line.exec(running.written())?.[1]);
  return { ...running, port, stop: () => running.ended('SIGTERM') };
}
