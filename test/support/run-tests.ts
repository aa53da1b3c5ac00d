/** Node's test runner over compiled test files, in a process of its own, beside the ClickHouse that they share. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClickHouseClient } from '@clickhouse/client';
import { startClickhouse } from '../../src/embedded/clickhouse.js';
import { ensureRedisServer } from '../../src/embedded/install-redis.js';
import { startOnFreePort } from '../../src/embedded/ports.js';
import { type Closers, createClosers, StartError } from '../../src/lifecycle.js';
import { createLogger } from '../../src/telemetry.js';
import { connectWarehouse, selectRows } from '../../src/warehouse/client.js';
import { runClickhouseNames } from './embedded.js';

export interface TestRun {
  /** Compiled test files, below dist/test. */
  readonly files: readonly string[];
  /** Files that run at the same time. */
  readonly together: number;
  /** After this long a file is given up, and a test in it where it sets no limit of its own. */
  readonly limitMs: number;
  readonly env: Readonly<Record<string, string>>;
}

const tests = fileURLToPath(new URL('..', import.meta.url));
const root = fileURLToPath(new URL('../../..', import.meta.url));
const logger = createLogger('warn', 'test run');
/** Tests of these kinds compute only. */
const withoutServers = /^(unit|golden)\//;

/** Runs the files and takes over the runner's exit code. */
export async function runTests({ files, together, limitMs, env }: TestRun): Promise<void> {
  const closers = createClosers(logger);
  try {
    const servers = files.every((name) => withoutServers.test(name)) ? {} : await startServers(closers);
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
      env: { ...process.env, ...env, ...servers },
    });
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
    const [code] = await once(runner, 'close');
    process.exitCode = code ?? 1;
  } finally {
    await closers.close();
  }
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
      if (!lives(Number(/\d+/.exec(name)?.[0])))
        await client.command({ query: `DROP DATABASE ${name} SYNC` });
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

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

/** Files with tests whose names contain one of the words, or all of them. @throws StartError where there are none */
export function testFiles(words: readonly string[], folder = ''): string[] {
  const files = readdirSync(join(tests, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => join(folder, name))
    .filter((name) => words.length === 0 || words.some((word) => name.includes(word)))
    .sort();
  if (files.length === 0) throw new StartError(`no test file matches ${words.join(' ')}`);
  return files;
}

/** Both options came with Node 20.11. */
function takesLimits(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 20 || minor >= 11;
}
