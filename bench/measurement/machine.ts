import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { version } from '../../src/version.js';
import type { BenchResults } from '../results/results.js';
import { findPostgres } from '../targets/postgres.js';
import { resolveBenchPath } from '../targets/targets.js';

const root = resolveBenchPath('../..');

export const describeMachine = (): BenchResults['machine'] => ({
  processor: cpus()[0]?.model.trim() ?? 'unknown',
  cores: availableParallelism(),
  memoryMb: Math.round(totalmem() / 2 ** 20),
  system: `${type()} ${release()}`,
});

/** With `+` if files are changed; null outside a repository. */
export function readCommit(): string | null {
  const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  const head = git('rev-parse', '--short=12', 'HEAD');
  if (head.error !== undefined || head.status !== 0) return null;
  return head.stdout.trim() + (git('status', '--porcelain').stdout.trim() === '' ? '' : '+');
}

const listedPackages = ['uWebSockets.js', 'piscina', 'ioredis', 'bullmq', 'fastify', 'pg'];

export function readVersions(): Record<string, string> {
  const redis = spawnSync('redis-server', ['--version'], { encoding: 'utf8' }).stdout;
  return {
    node: process.versions.node,
    skilltrace: version,
    redis: /v=(\S+)/.exec(redis)?.[1] ?? 'unknown',
    postgres: readPostgresVersion(),
    v8: process.versions.v8,
    clickhouse: `chdb ${readPackageVersion('chdb')}`,
    ...Object.fromEntries(listedPackages.map((name) => [name, readPackageVersion(name)])),
  };
}

/** `postgres --version` prints "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)". */
function readPostgresVersion(): string {
  const folder = findPostgres();
  if (folder === null) return 'not installed';
  const { stdout } = spawnSync(join(folder, 'postgres'), ['--version'], { encoding: 'utf8' });
  return /\) (\S+)/.exec(stdout)?.[1] ?? 'unknown';
}

function readPackageVersion(name: string): string {
  const file = join(root, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
