import { connect as connectPlain, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { describeConnectionError } from '../../../connection-problem.js';
import { parseRedisAddress } from '../../../contracts/settings/redis-settings.js';
import { type Closers, StartError } from '../../../lifecycle.js';
import type { Logger } from '../../../logger.js';
import { connectRedis, onRootCause, type RedisClient, waitUntilReady } from '../connection/client.js';

const readyTimeoutMs = 10_000;

/** @throws StartError */
export async function openRedis(
  url: string,
  { logger, closers }: { readonly logger: Logger; readonly closers: Closers },
  waitReplicas = 0,
  check: (client: RedisClient) => Promise<void> = async () => undefined,
): Promise<RedisClient> {
  const client = connectRedis(url, waitReplicas);
  closers.add('Redis connection', () => client.disconnect());
  client.on('error', (error) => logger.debug({ err: error }, 'Redis connection'));
  const { nodes } = parseRedisAddress(url);
  const probeAbort = new AbortController();
  try {
    const ready = waitUntilReady(client, readyTimeoutMs);
    await Promise.race([ready, detectTlsMismatch(nodes[0] as string, probeAbort.signal).then(() => ready)]);
    await check(client);
  } catch (cause) {
    if (cause instanceof StartError) throw cause;
    const hosts = nodes.map((node) => new URL(node).host);
    const what = `cannot reach Redis at ${hosts.join()}: ${describeConnectionError(cause).text}`;
    throw new StartError(`REDIS_URL: ${what}. Start Redis or correct the URL.`, { cause });
  } finally {
    probeAbort.abort();
  }
  logDisconnects(client, logger);
  return client;
}

const logIntervalMs = 60_000;

function logDisconnects(client: RedisClient, logger: Logger): void {
  const logged = new Map<string, number>();
  let isLost = false;
  onRootCause(client, (error) => {
    const { text } = describeConnectionError(error);
    if (performance.now() - (logged.get(text) ?? Number.NEGATIVE_INFINITY) < logIntervalMs) return;
    isLost = true;
    logged.set(text, performance.now());
    logger.warn(`Redis is unreachable: ${text}; answers are rejected with 503 until it responds`);
  });
  client.on('ready', () => {
    if (isLost) logger.info('Redis is reachable again');
    isLost = false;
  });
}

const tlsProbeDelayMs = 1000;
const tlsProbeTimeoutMs = 2000;

/** A mismatch breaks or hangs the connection without a clear error. Sends no secrets. */
async function detectTlsMismatch(url: string, signal: AbortSignal): Promise<void> {
  await sleep(tlsProbeDelayMs, undefined, { signal });
  const { protocol, hostname, port } = new URL(url);
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
  if (protocol === 'rediss:') {
    const socket = connectPlain(place);
    socket.write('PING\r\n');
    if (await waitForEvent(socket, 'data'))
      throw new Error('the URL has rediss:// but the server does not support TLS');
  } else if (await waitForEvent(connectTls({ ...place, rejectUnauthorized: false }), 'secureConnect')) {
    throw new Error('the URL has redis:// but the server requires TLS');
  }
}

async function waitForEvent(socket: Socket, event: string): Promise<boolean> {
  const ends = new Promise<boolean>((resolve) => {
    socket.setTimeout(tlsProbeTimeoutMs, () => resolve(false));
    socket.once(event, () => resolve(true));
    for (const end of ['error', 'close']) socket.once(end, () => resolve(false));
  });
  return ends.finally(() => socket.destroy());
}
