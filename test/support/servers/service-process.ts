/** The service in a process of its own, with all that it writes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { waitFor } from '../wait.js';
import type { Scoped } from './service.js';

const mainBundle = import.meta.resolve('#bundle/main.js');
/** What `node -e` runs to start the service as it ships. */
export const serviceProgram = `import(${JSON.stringify(mainBundle)}).then(({ main }) => main([]));`;

type Settings = Readonly<Record<string, string>>;

/** A process that need not come to serve. */
export interface Running {
  readonly child: ChildProcess;
  /** Both outputs so far. */
  written(): string;
  /** Resolves when it has ended, by itself or by a signal, and has written everything. */
  ended(signal?: NodeJS.Signals): Promise<void>;
}

export interface Launched extends Running {
  readonly port: number;
  stop(): Promise<void>;
}

/** What a process of a test needs of this one's variables, and no settings of the service. */
export const environment = (): Record<string, string | undefined> => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
});

/** Starts it; it ends with the test at the latest. */
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

/** Resolves when it serves. */
export async function launchService(t: Scoped, settings: Settings): Promise<Launched> {
  const running = runService(t, settings);
  const line = /Skilltrace listens on http:\/\/127\.0\.0\.1:(\d+)/;
  await waitFor('the start', () => {
    if (running.child.exitCode !== null) throw new Error(`it ended: ${running.written()}`);
    return line.test(running.written());
  });
  const port = Number(line.exec(running.written())?.[1]);
  return { ...running, port, stop: () => running.ended('SIGTERM') };
}
