/** Node's test runner over compiled test files, in a process of its own, beside the ClickHouse that they share. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { ClickHouseClient } from '@clickhouse/client';
import { readChildrenSeconds } from '../../../bench/targets/processes.js';
import { identifyProcess } from '../../../src/dir-lock.js';
import { ensureRedisServer } from '../../../src/embedded/ensure-redis.js';
import { startOnFreePort } from '../../../src/embedded/free-port.js';
import { startClickhouse } from '../../../src/embedded/start-clickhouse.js';
import { type Closers, createClosers, StartError } from '../../../src/lifecycle.js';
import { createLogger } from '../../../src/logger.js';
import { connectWarehouse, selectRows } from '../../../src/warehouse/clickhouse/client.js';
import { runClickhouseNames } from '../servers/embedded.js';
import { figuresOf } from './figures.js';
import { dearestFiles, figuresTable, readNotes } from './figures-table.js';
import { root } from './root.js';

export interface TestRun {
  /** Compiled test files, below dist/test. */
  readonly files: readonly string[];
  /** Files that run at the same time. */
  readonly together: number;
  /** After this long a file is given up, and a test in it where it sets no limit of its own. */
  readonly limitMs: number;
  readonly env: Readonly<Record<string, string>>;
  /** Whether to tell in the end what was started and what it took. */
  readonly figures: boolean;
}

/** Makes stack traces name the sources. */
export const sourceMaps = `--import=${import.meta.resolve('#bundle/source-maps.js')}`;
const tests = fileURLToPath(new URL('../..', import.meta.url));
const logger = createLogger('warn', 'test run');

/** Runs the files and takes over the runner's exit code. */
export async function runTests(run: TestRun): Promise<void> {
  const closers = createClosers(logger);
  const notes = join(tmpdir(), `skilltrace-figures-${process.pid}`);
  try {
    await runBesideServers(run, run.figures ? figuresOf(notes) : {}, closers);
  } finally {
    await closers.close();
  }
  if (!run.figures) return;
  const told = readNotes(notes);
  process.stdout.write(
    `\n${figuresTable(told, readChildrenSeconds())}\nThe dearest files:\n${dearestFiles(told, 20)}`,
  );
  await rm(notes);
}

async function runBesideServers(
  { files, together, limitMs, env }: TestRun,
  figures: Readonly<Record<string, string>>,
  closers: Closers,
): Promise<void> {
  const servers = files.every(isPure) ? {} : await startServers(closers);
  const limits = [`--test-concurrency=${together}`, `--test-timeout=${limitMs}`];
  const options = [
    sourceMaps,
    ...shortLived,
    '--test',
    '--test-reporter=spec',
    ...(takesLimits() ? limits : []),
  ];
  const runner = spawn(process.execPath, [...options, ...processesOf(files)], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env, ...servers, ...figures },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
  const [code] = await once(runner, 'close');
  process.exitCode = code ?? 1;
}

/** Redis is installed where it is missing; each file starts its own. @returns variables that tell of ClickHouse */
async function startServers(closers: Closers): Promise<Record<string, string>> {
  await ensureRedisServer((line) => process.stderr.write(`skilltrace: ${line}\n`));
  const dir = await mkdtemp(join(tmpdir(), 'skilltrace-test-run-'));
  closers.add('files of ClickHouse', () => rm(dir, { recursive: true, force: true, maxRetries: 10 }));
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
  dropOldDatabases(connectWarehouse(server.clickhouseUrl), closers);
  return {
    [runClickhouseNames.clickhouseUrl]: server.clickhouseUrl,
    [runClickhouseNames.analystUrl]: server.analystUrl,
  };
}

const dropEveryMs = 2000;

/** Those of processes that have ended, however they did. */
function dropOldDatabases(client: ClickHouseClient, closers: Closers): void {
  closers.add('connection to ClickHouse', () => client.close());
  let dropping = Promise.resolve();
  const drop = async (): Promise<void> => {
    const query = `SELECT name FROM system.databases WHERE match(name, '^t[0-9]+_')`;
    const names = (await selectRows<{ name: string }>(client, query)).map(({ name }) => name);
    for (const name of names)
      if (identifyProcess(Number(/\d+/.exec(name)?.[0])) === null)
        await client.command({ query: `DROP DATABASE ${name}` });
  };
  const timer = setInterval(() => {
    dropping = dropping
      .then(drop)
      .catch((error: unknown) => logger.warn({ err: error }, 'a database of a test stays'));
  }, dropEveryMs);
  closers.add('old databases', () => {
    clearInterval(timer);
    return dropping;
  });
}

/** Whether a file's tests compute only, and need no servers. */
export const isPure = (name: string): boolean => /^(unit|golden)\//.test(name);

export const compiledPath = (name: string): string => join(tests, name);

const isFull = (name: string): boolean => name.startsWith('full/');

/** Which files are of `npm test`, and which of `npm run test:full`: both, where they do more in the long form. */
const suites = {
  short: (name: string): boolean => !isFull(name),
  long: (name: string): boolean =>
    isFull(name) || readFileSync(compiledPath(name), 'utf8').includes('/long-form.js'),
} as const;

/**
 * Files of one of the two suites whose names contain one of the words, or all of them.
 * @throws StartError where there are none
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
  const elsewhere = named.length === 0 ? '' : `; another suite has ${named.join(', ')}`;
  throw new StartError(`no file of these tests matches ${words.join(' ')}${elsewhere}`);
}

const sharingProcesses = 2;

/** What the runner gets, which gives each a process: the files, but for those that share a service, which go together. */
function processesOf(files: readonly string[]): string[] {
  const paths = files.map(compiledPath);
  const sharing = paths.filter((path) => readFileSync(path, 'utf8').includes('await sharedService('));
  if (sharing.length < 2) return paths;
  const groups = Array.from({ length: sharingProcesses }, (_, group) => {
    const members = sharing.filter((_, i) => i % sharingProcesses === group);
    const file = compiledPath(join('contract', `shared-${group + 1}.group.js`));
    writeFileSync(file, groupOf(members));
    return file;
  });
  const alone = paths.filter((path) => !sharing.includes(path));
  // Those that wait for ClickHouse begin, those that compute fill the gaps.
  return [
    ...groups,
    ...alone.filter((path) => !isPure(relative(tests, path))),
    ...alone.filter((path) => isPure(relative(tests, path))),
  ];
}

/** Files are loaded one after the other, before the first test: a run that has no tests left ends, whatever is loading. */
const groupOf = (paths: readonly string[]): string => `import { test } from 'node:test';
const load = async () => {
${paths.map((path) => `  await import(${JSON.stringify(pathToFileURL(path).href)});\n`).join('')}};
const loading = load();
test('the files of this process are loaded', () => loading);
await loading;
`;

/**
 * For processes that live for seconds, as many as there are processors: threads that collect garbage side by side, and code
 * that is optimised early, cost them a quarter more CPU (measured).
 */
const shortLived = ['--single-threaded-gc', '--interrupt-budget=1000000'];

/** Both options came with Node 20.11. */
function takesLimits(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 20 || minor >= 11;
}
