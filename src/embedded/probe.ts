import { Redis } from 'ioredis';

const PROBE_MS = 2_000;

/**
 * Asks a Redis for a PONG, with its password.
 *
 * @param url one URL, or comma-separated nodes of a cluster, of which one has to answer
 * @returns null when it answers, else the reason why not (`LOADING …` while it reads its data)
 */
export async function probeRedis(url: string): Promise<string | null> {
  let problem: string | null = null;
  for (const node of url.split(',')) {
    problem = await pingNode(node);
    if (problem === null) return null;
  }
  return problem;
}

async function pingNode(url: string): Promise<string | null> {
  const client = new Redis(url, {
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: PROBE_MS,
    commandTimeout: PROBE_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let cause: Error | undefined;
  client.on('error', (error: Error) => {
    cause = error;
  });
  try {
    await client.connect();
    await client.ping();
    return null;
  } catch (error) {
    return messageOf(cause ?? error);
  } finally {
    client.disconnect();
  }
}

/** @returns null when the ClickHouse HTTP interface at `url` answers /ping, else the reason why not */
export async function probeClickhouse(url: string): Promise<string | null> {
  const { protocol, host } = new URL(url);
  try {
    const answer = await fetch(`${protocol}//${host}/ping`, { signal: AbortSignal.timeout(PROBE_MS) });
    await answer.arrayBuffer();
    return answer.ok ? null : `status ${answer.status}`;
  } catch (error) {
    return messageOf(error instanceof Error && error.cause ? error.cause : error);
  }
}

/** An AggregateError (all addresses of a host refused) has no message of its own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
