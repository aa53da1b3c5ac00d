import { type StdioOptions, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { maxListpackBytes, minRewriteSize } from '../contracts/redis-settings.js';
import { makeFolder } from './private-file.js';
import { type ServerOptions, type Supervised, supervise } from './supervisor.js';

export type RedisOptions = ServerOptions & {
  password: string;
  fsync: 'everysec' | 'always';
  /** Bytes; absent: no limit. */
  maxmemory?: number | undefined;
};

/** For the first reply, except while Redis loads its data. */
const answerMs = 15_000;
const pollMs = 25;
const loadingNoteMs = 5_000;

/** Ends redis-server with its parent, which has the other end of fd 3. */
const startScript = '(cat <&3 >/dev/null; kill -TERM $$) & exec redis-server "$0" 3<&-';

/** Append-only, without eviction. Ctrl-C does not reach redis-server. It ends when this process dies. */
export function startRedis(options: RedisOptions): Supervised & { url: string } {
  const { dir, port, password, logger } = options;
  const url = `redis://:${password}@127.0.0.1:${port}`;
  makeFolder(dir);
  const configFile = join(dir, 'redis.conf');
  writeFileSync(configFile, redisConfig(options), { mode: 0o600 });
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
      untilLoaded(url, logFile, signal, () =>
        logger.info({ pid }, 'redis-server is reading its append-only file'),
      ),
  });
  return { ...server, url };
}

async function untilLoaded(
  url: string,
  logFile: string,
  signal: AbortSignal,
  note: () => void,
): Promise<void> {
  // Imported late, to start the servers first.
  const { probeRedis } = await import('./probe.js');
  const deadline = performance.now() + answerMs;
  let nextNote = performance.now() + loadingNoteMs;
  for (;;) {
    const silence = await probeRedis(url);
    signal.throwIfAborted();
    if (silence === null) return;
    const loading = silence.reason.startsWith('LOADING');
    const now = performance.now();
    if (!loading && now > deadline)
      throw new Error(`redis-server does not answer: ${silence.reason}; see ${logFile}`);
    if (loading && now > nextNote) {
      note();
      nextNote = now + loadingNoteMs;
    }
    await sleep(pollMs);
  }
}

/** Redis 6 to 8 and Valkey accept `ziplist` names for `listpack` settings. */
const redisConfig = ({ dir, port, password, fsync, maxmemory = 0 }: RedisOptions): string =>
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
