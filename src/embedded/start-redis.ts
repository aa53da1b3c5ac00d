import { type StdioOptions, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { maxListpackBytes, minRewriteSize } from '../contracts/settings/redis-settings.js';
import { ensureFolder } from './private-file.js';
import { type ServerOptions, type SupervisedServer, supervise } from './supervisor.js';

export type RedisOptions = ServerOptions & {
  password: string;
  fsync: 'everysec' | 'always';
  /** Bytes; absent: no limit. */
  maxmemory?: number | undefined;
};

/** For the first reply, except while Redis loads its data. */
const startTimeoutMs = 15_000;
const pollMs = 25;
const loadingReportMs = 5_000;

/** Ends redis-server with its parent, which has the other end of fd 3. */
const startScript = '(cat <&3 >/dev/null; kill -TERM $$) & exec redis-server "$0" 3<&-';

/** Append-only, without eviction. Ctrl-C does not reach redis-server. It ends when this process dies. */
export function startRedis(options: RedisOptions): SupervisedServer & { url: string } {
  const { dir, port, password, logger } = options;
  const url = `redis://:${password}@127.0.0.1:${port}`;
  ensureFolder(dir);
  const configFile = join(dir, 'redis.conf');
  writeFileSync(configFile, buildRedisConfig(options), { mode: 0o600 });
  const logFile = join(dir, 'redis.log');
  const server = supervise({
    name: 'redis-server',
    logger,
    logFile,
    spawn() {
      const stdio: StdioOptions = ['ignore', 'ignore', 'ignore', 'pipe'];
      const child = spawn('sh', ['-c', startScript, configFile], { detached: true, stdio });
      if (child.pid !== undefined) options.onSpawn?.(child.pid);
      return child;
    },
    ready: async ({ pid }, signal) =>
      waitUntilLoaded(url, logFile, signal, () =>
        logger.info({ child: pid }, 'redis-server is loading its append-only file'),
      ),
  });
  return { ...server, url };
}

async function waitUntilLoaded(
  url: string,
  logFile: string,
  signal: AbortSignal,
  reportLoading: () => void,
): Promise<void> {
  // Imported late, to start the servers first.
  const { probeRedis } = await import('./probe.js');
  const deadline = performance.now() + startTimeoutMs;
  let nextReport = performance.now() + loadingReportMs;
  for (;;) {
    const failure = await probeRedis(url);
    signal.throwIfAborted();
    if (failure === null) return;
    const isLoading = failure.reason.startsWith('LOADING');
    const now = performance.now();
    if (!isLoading && now > deadline)
      throw new Error(`redis-server does not respond: ${failure.reason}; see ${logFile}`);
    if (isLoading && now > nextReport) {
      reportLoading();
      nextReport = now + loadingReportMs;
    }
    await sleep(pollMs);
  }
}

/** Redis 6 to 8 and Valkey accept `ziplist` names for `listpack` settings. */
const buildRedisConfig = ({ dir, port, password, fsync, maxmemory = 0 }: RedisOptions): string =>
  `bind 127.0.0.1
port ${port}
protected-mode yes
requirepass ${password}
daemonize no
dir ${JSON.stringify(dir)}
logfile ${JSON.stringify(join(dir, 'redis.log'))}
appendonly yes
appendfsync ${fsync}
aof-use-rdb-preamble yes
aof-load-truncated yes
save ""
stop-writes-on-bgsave-error no
maxmemory ${maxmemory}
maxmemory-policy noeviction
hash-max-ziplist-entries 128
hash-max-ziplist-value ${maxListpackBytes}
auto-aof-rewrite-min-size ${minRewriteSize}
`;
