/** Runs compiled test files with Node's test runner, and the ClickHouse that they share. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
import { cpuNotesVariable, formatCpuReport } from './cpu-report.js';
import { root } from './root.js';

export interface TestRun {
  /** Compiled test files, below dist/test. */
  readonly files: readonly string[];
  /** Processes at the same time. */
  readonly together: number;
  /** Time limit of a process, and of each test without a limit. */
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
    process.stdout.write(`\n${formatCpuReport(notes, readChildrenSeconds())}`);
    await rm(notes);
  }
}

async function runWithServers(
  { files, together, limitMs, env }: TestRun,
  variables: Readonly<Record<string, string>>,
  closers: Closers,
): Promise<void> {
  const servers = files.every(isPure) ? {} : await startServers(closers);
  const entries = groupFiles(files);
  closers.add('entries of the test processes', () =>
    Promise.all(entries.map((entry) => rm(entry, { force: true }))),
  );
  const limits = [`--test-concurrency=${together}`, `--test-timeout=${limitMs}`];
  const options = [
    sourceMaps,
    ...shortLived,
    '--test',
    '--test-reporter=spec',
    ...(takesLimits() ? limits : []),
  ];
  const runner = spawn(process.execPath, [...options, ...entries], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env, ...servers, ...variables },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
  const [code] = await once(runner, 'close');
  process.exitCode = code ?? 1;
}

/** Installs Redis if it is missing; tests start it. @returns environment variables with the ClickHouse URLs */
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

/** Drops databases of ended processes. */
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
      .catch((error: unknown) => logger.warn({ err: error }, 'cannot drop a database of a test'));
  }, dropEveryMs);
  closers.add('old databases', () => {
    clearInterval(timer);
    return dropping;
  });
}

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

/** Processes for files that compute only, for those that share a service, and for those that start servers. */
const processes = { pure: 2, shared: 2, servers: 10 };

/**
 * Distributes files over processes: starting one costs up to 1 s of CPU.
 * @returns the entry of each process. The runner starts them in this order.
 */
function groupFiles(files: readonly string[]): string[] {
  const pure = files.filter(isPure);
  const shared = files.filter((name) => !isPure(name) && usesSharedService(name));
  const others = files.filter((name) => !isPure(name) && !usesSharedService(name));
  const full = others.filter(isFull);
  const groups = [
    ...splitRoundRobin(full, full.length),
    ...splitRoundRobin(shared, processes.shared),
    ...splitRoundRobin(
      others.filter((name) => !isFull(name)),
      processes.servers,
    ),
    ...splitRoundRobin(pure, processes.pure),
  ];
  return groups.map((names, i) => {
    const entry = compiledPath(`group-${process.pid}-${i + 1}.js`);
    writeFileSync(entry, buildGroupEntry(names));
    return entry;
  });
}

const usesSharedService = (name: string): boolean =>
  readFileSync(compiledPath(name), 'utf8').includes('await sharedService(');

function splitRoundRobin(names: readonly string[], count: number): string[][] {
  const groups = Array.from({ length: Math.min(count, names.length) }, (): string[] => []);
  for (const [i, name] of names.entries()) groups[i % groups.length]?.push(name);
  return groups;
}

const buildGroupEntry = (names: readonly string[]): string => {
  const files = names.map((name) => [
    name.replace(/\.test\.js$/, ''),
    pathToFileURL(compiledPath(name)).href,
  ]);
  return `import { runTestGroup } from './support/runner/test-group.js';
await runTestGroup(new Map(${JSON.stringify(files)}));
`;
};

/**
 * V8 options for processes that live for seconds: parallel garbage collection and early optimisation cost a quarter
 * more CPU (measured). Node 22 rejects `--interrupt-budget`.
 */
const shortLived = [
  '--single-threaded-gc',
  ...(process.versions.node.startsWith('20.') ? ['--interrupt-budget=1000000'] : []),
];

/** Both options came with Node 20.11. */
function takesLimits(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 20 || minor >= 11;
}
