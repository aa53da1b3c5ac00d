/** Runs compiled test files with Node's test runner, and the ClickHouse that they share. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readChildrenSeconds } from '../../../bench/targets/processes.js';
import { ensureRedisServer } from '../../../src/embedded/ensure-redis.js';
import { startOnFreePort } from '../../../src/embedded/free-port.js';
import { startClickhouse } from '../../../src/embedded/start-clickhouse.js';
import { type Closers, createClosers, StartError } from '../../../src/lifecycle.js';
import { indices } from '../../../src/lists.js';
import { createLogger } from '../../../src/logger.js';
import { runClickhouseNames } from '../servers/embedded.js';
import { tempDir } from '../temp.js';
import { cpuNotesVariable, formatCpuReport, nameOfFile, readEndedFiles } from './cpu-report.js';
import { root } from './root.js';
import type { TestGroup } from './test-group.js';
import { fillQueue } from './test-queue.js';

export interface TestRun {
  /** Compiled test files, below dist/test. */
  readonly files: readonly string[];
  /** Processes at the same time. */
  readonly together: number;
  /** Whether each file runs in a separate process. */
  readonly isolated: boolean;
  /** Time limit of a file, and of each test without a limit. */
  readonly limitMs: number;
  readonly env: Readonly<Record<string, string>>;
}

/** Makes stack traces name the sources. */
export const sourceMaps = `--import=${import.meta.resolve('#bundle/source-maps.js')}`;
const tests = fileURLToPath(new URL('../..', import.meta.url));
const logger = createLogger('warn', 'test run');

/** Runs the files, prints the CPU that they used, and sets the runner's exit code. */
export async function runTests(run: TestRun): Promise<void> {
  const closers = createClosers(logger);
  const notes = join(tmpdir(), `skilltrace-test-cpu-${process.pid}`);
  writeFileSync(notes, '');
  try {
    await runWithServers(run, { [cpuNotesVariable]: notes }, closers);
  } finally {
    await closers.close();
    const ended = readEndedFiles(notes);
    process.stdout.write(`\n${formatCpuReport(ended, readChildrenSeconds())}`);
    requireAll(run.files, new Set(ended.map(({ file }) => file)));
    await rm(notes);
  }
}

/** A process that exits early with code 0 would hide the tests that it has not run. */
function requireAll(files: readonly string[], ended: ReadonlySet<string>): void {
  const missing = files.map(nameOfFile).filter((name) => !ended.has(name));
  if (missing.length === 0) return;
  process.stdout.write(`\nThese files did not end: ${missing.join(' ')}\n`);
  process.exitCode ||= 1;
}

async function runWithServers(
  { files, together, isolated, limitMs, env }: TestRun,
  variables: Readonly<Record<string, string>>,
  closers: Closers,
): Promise<void> {
  const servers = files.every(isPure) ? {} : await startServers(closers);
  const dir = await openFolder(closers);
  const entries = writeEntries(dir, orderFiles(files), { together, isolated, limitMs });
  const concurrency = takesConcurrency() ? [`--test-concurrency=${together}`] : [];
  const options = [sourceMaps, ...shortLived, '--test', ...reporters, ...concurrency];
  const runner = spawn(process.execPath, [...options, ...entries], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env, ...servers, ...variables },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
  const [code] = await once(runner, 'close');
  process.exitCode = code ?? 1;
}

const reporters = ['spec', import.meta.resolve('./exit-reporter.js')].flatMap((name) => [
  `--test-reporter=${name}`,
  '--test-reporter-destination=stdout',
]);

/** Installs Redis if it is missing; tests start it. @returns environment variables with the ClickHouse URLs */
async function startServers(closers: Closers): Promise<Record<string, string>> {
  await ensureRedisServer((line) => process.stderr.write(`skilltrace: ${line}\n`));
  const dir = await openFolder(closers);
  const server = await startOnFreePort(async (port) => {
    const started = startClickhouse({
      dir,
      port,
      password: randomUUID(),
      analystPassword: randomUUID(),
      // Databases of tests.
      readableTables: ['t*.*'],
      niceness: 0,
      logger,
    });
    closers.add('ClickHouse', started.stop);
    await started.ready;
    return started;
  });
  return {
    [runClickhouseNames.clickhouseUrl]: server.clickhouseUrl,
    [runClickhouseNames.analystUrl]: server.analystUrl,
  };
}

const openFolder = (closers: Closers): Promise<string> =>
  tempDir({ after: (remove) => closers.add('temporary files', remove) });

/** Whether the tests of a file only compute and need no servers. */
export const isPure = (name: string): boolean => /^(unit|golden)\//.test(name);

export const compiledPath = (name: string): string => join(tests, name);

const isFull = (name: string): boolean => name.startsWith('full/');

/** `short`: npm test. `long`: npm run test:full. A file that does more in the long form belongs to both. */
const suites = {
  short: (name: string): boolean => !isFull(name),
  long: (name: string): boolean =>
    isFull(name) || readFileSync(compiledPath(name), 'utf8').includes('/long-form.js'),
} as const;

/**
 * Files of a suite with one of the words in the name; without words, all files.
 * @throws StartError if no file matches
 */
export function testFiles(
  suite: keyof typeof suites,
  words: readonly string[],
  isMeant: (name: string) => boolean = () => true,
): string[] {
  const named = readdirSync(tests, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .filter((name) => words.length === 0 || words.some((word) => name.includes(word)))
    .sort();
  const files = named.filter((name) => suites[suite](name) && isMeant(name));
  if (files.length > 0) return files;
  const elsewhere = named.length === 0 ? '' : `. The other suite contains ${named.join(', ')}`;
  throw new StartError(`no test file matches ${words.join(' ')}${elsewhere}`);
}

/**
 * Files that share a service are at the end, where one process takes them, so that one service is enough. Short files, which only
 * compute, are before them: the processes meet there and end at about the same time.
 */
function orderFiles(files: readonly string[]): string[] {
  const pure = files.filter(isPure);
  const shared = files.filter(usesSharedService);
  const others = files.filter((name) => !isPure(name) && !shared.includes(name));
  return [...others, ...pure, ...shared];
}

const usesSharedService = (name: string): boolean =>
  !isPure(name) && readFileSync(compiledPath(name), 'utf8').includes('await sharedService(');

/** Writes the entry of each process. Few processes run all files, because starting one costs up to 1 s of CPU. */
function writeEntries(
  dir: string,
  files: readonly string[],
  { together, isolated, limitMs }: Pick<TestRun, 'together' | 'isolated' | 'limitMs'>,
): string[] {
  const queue = join(dir, 'queue');
  mkdirSync(queue);
  fillQueue(queue, files);
  const module = import.meta.resolve('./test-group.js');
  const count = isolated ? files.length : Math.min(together, files.length);
  return indices(count).map((i) => {
    const entry = join(dir, `process-${i + 1}.mjs`);
    const group: TestGroup = { queue, fromEnd: i === 0 && !isolated, isolated, limitMs };
    writeFileSync(
      entry,
      `import { runTestGroup } from ${JSON.stringify(module)};\nawait runTestGroup(${JSON.stringify(group)});\n`,
    );
    return entry;
  });
}

/**
 * V8 options for processes that live for seconds: parallel garbage collection and early optimisation cost a quarter
 * more CPU (measured). Node 22 rejects `--interrupt-budget`.
 */
const shortLived = [
  '--single-threaded-gc',
  ...(process.versions.node.startsWith('20.') ? ['--interrupt-budget=1000000'] : []),
];

/** The option came with Node 20.11. Without it, processes run one after the other on two cores. */
function takesConcurrency(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 20 || minor >= 11;
}
