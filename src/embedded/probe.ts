import { Redis } from 'ioredis';
import { hasCode } from './private-file.js';

const probeMs = 2_000;

/** `isRefused`: the server has ended. Otherwise it may only be suspended. */
export type Silence = { reason: string; refused: boolean };

/**
 * @param url comma-separated for a cluster: one node must respond
 * @returns why it does not reply to PING (`LOADING …` while it reads its data); null: it replies
 */
export async function probeRedis(url: string): Promise<Silence | null> {
  const answers = await Promise.all(url.split(',').map(pingNode));
  const silences = answers.filter((answer) => answer !== null);
  return silences.length < answers.length ? null : joined(silences);
}

const joined = (silences: readonly Silence[]): Silence => ({
  reason: silences.map(({ reason }) => reason).join('; '),
  refused: silences.every(({ refused }) => refused),
});

async function pingNode(url: string): Promise<Silence | null> {
  const client = new Redis(url, {
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: probeMs,
    commandTimeout: probeMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let cause: unknown;
  client.on('error', (error) => {
    cause = error;
  });
  try {
    await client.connect();
    await client.ping();
    return null;
  } catch (error) {
    return silenceOf(cause ?? error);
  } finally {
    client.disconnect();
  }
}

export async function probeClickhouse(url: string): Promise<Silence | null> {
  const { protocol, host } = new URL(url);
  try {
    const answer = await fetch(`${protocol}//${host}/ping`, { signal: AbortSignal.timeout(probeMs) });
    await answer.arrayBuffer();
    return answer.ok ? null : { reason: `status ${answer.status}`, refused: false };
  } catch (error) {
    return silenceOf(error instanceof Error && error.cause ? error.cause : error);
  }
}

/** An AggregateError (all addresses refused) has no message. */
function silenceOf(error: unknown): Silence {
  if (error instanceof AggregateError) return joined(error.errors.map(silenceOf));
  const reason = error instanceof Error ? error.message : String(error);
  return { reason, refused: hasCode(error, 'ECONNREFUSED') };
}
