import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';

/** How a command ended, and what it wrote. */
export interface Ended {
  /** Null where a signal ended it; which one stands at the end of `err`. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Starts a command line tool as the set-up does, in a process of its own that does not outlive the test. */
export function startCommand(
  t: TestContext,
  name: string,
  env: Readonly<Record<string, string>>,
  ...args: string[]
): ChildProcess {
  const entry = new URL(`../../src/cli/${name}.js`, import.meta.url).href;
  const script = `import(${JSON.stringify(entry)}).then((m) => m.main(process.argv.slice(1)))`;
  const child = spawn(process.execPath, ['-e', script, '--', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  return child;
}

export async function endOf(child: ChildProcess): Promise<Ended> {
  const read = { out: '', err: '' };
  child.stdout?.on('data', (text: Buffer) => {
    read.out += text;
  });
  child.stderr?.on('data', (text: Buffer) => {
    read.err += text;
  });
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  if (signal !== null) read.err += `ended by ${signal}\n`;
  return { code, ...read };
}
