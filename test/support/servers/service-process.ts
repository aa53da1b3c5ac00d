/** The service in a separate process. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { withTimeout } from '../../../src/lifecycle.js';
import type { Scoped } from '../scope.js';
import { waitFor } from '../wait.js';

const mainBundle = import.meta.resolve('#bundle/main.js');
/** A program for `node -e` that starts the bundled service. */
export const serviceProgram = `import(${JSON.stringify(mainBundle)}).then(({ main }) => main([]));`;

type Settings = Readonly<Record<string, string>>;

export type Launched = Awaited<ReturnType<typeof launchService>>;

/** Environment variables of this process without settings of the service. */
export const environment = (): Record<string, string | undefined> => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
});

/** Reached only in a failing test. */
const endLimitMs = 120_000;

/** Starts the service, which may fail to start, and ends with the test at the latest. */
export function runService(t: Scoped, settings: Settings) {
  const child = spawn(process.execPath, ['-e', serviceProgram], {
    env: { ...environment(), PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  const closed = once(child, 'close');
  /** Resolves when the process has ended and all its output has been read. Sends the signal first. */
  const ended = async (signal?: NodeJS.Signals): Promise<void> => {
    if (signal !== undefined) child.kill(signal);
    await withTimeout(closed, endLimitMs).catch(() => assert.fail(`the service did not end: ${text}`));
  };
  t.after(() => ended('SIGKILL'));
  /** `written`: stdout and stderr so far. */
  return { child, written: () => text, ended };
}

/** Starts the service and waits until it listens. */
export async function launchService(t: Scoped, settings: Settings) {
  const running = runService(t, settings);
  const line = /Skilltrace listens on http:\/\/127\.0\.0\.1:(\d+)/;
  await waitFor('the start', () => {
    if (running.child.exitCode !== null) throw new Error(`the service ended: ${running.written()}`);
    return line.test(running.written());
  });
  const port = Number(line.exec(running.written())?.[1]);
  return { ...running, port, stop: () => running.ended('SIGTERM') };
}
