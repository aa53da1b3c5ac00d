/** Node's test runner over compiled test files, in a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureRedisServer } from '../../src/embedded/install-redis.js';
import { StartError } from '../../src/lifecycle.js';

export interface TestRun {
  /** Below this folder of the tests; '' is all of them. */
  readonly folder: string;
  /** Files whose names contain one of these; none: all. */
  readonly words: readonly string[];
  /** Files that run at the same time. */
  readonly together: number;
  /** After this long a file is given up, and a test in it where it sets no limit of its own. */
  readonly limitMs: number;
  readonly env: Readonly<Record<string, string>>;
}

const tests = fileURLToPath(new URL('..', import.meta.url));
const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Runs the files and takes over the runner's exit code. @throws StartError where no file is meant */
export async function runTests({ folder, words, together, limitMs, env }: TestRun): Promise<void> {
  await ensureRedisServer((line) => process.stderr.write(`skilltrace: ${line}\n`));
  const files = testFiles(folder).filter(
    (name) => words.length === 0 || words.some((word) => name.includes(word)),
  );
  if (files.length === 0) throw new StartError(`no test file matches ${words.join(' ')}`);
  const limits = [`--test-concurrency=${together}`, `--test-timeout=${limitMs}`];
  const options = [
    '--enable-source-maps',
    '--test',
    '--test-reporter=spec',
    ...(takesLimits() ? limits : []),
  ];
  const runner = spawn(process.execPath, [...options, ...files.map((name) => join(tests, name))], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
  const [code] = await once(runner, 'close');
  process.exitCode = code ?? 1;
}

const testFiles = (folder: string): string[] =>
  readdirSync(join(tests, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => join(folder, name))
    .sort();

/** Both options came with Node 20.11. */
function takesLimits(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 20 || minor >= 11;
}
