import { Redis } from 'ioredis';
import { hasErrorCode } from './private-file.js';

const probeMs = 2_000;

/** `isRefused`: the server has ended. Otherwise it may only be suspended. */
export type ProbeFailure = { reason: string; isRefused: boolean };

/**
 * @param url comma-separated for a cluster: one node must respond
 * @returns why it does not reply to PING (`LOADING …` while it reads its data); null: it replies
 */
export async function probeRedis(url: string): Promise<ProbeFailure | null> {
  const results = await Promise.all(url.split(',').map(pingNode));
  const failures = results.filter((answer) => answer !== null);
  return failures.length < results.length ? null : mergeFailures(failures);
}

const mergeFailures = (failures: readonly ProbeFailure[]): ProbeFailure => ({
  reason: failures.map(({ reason }) => reason).join('; '),
  isRefused: failures.every(({ isRefused }) => isRefused),
});

async function pingNode(url: string): Promise<ProbeFailure | null> {
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
    return toProbeFailure(cause ?? error);
  } finally {
    client.disconnect();
  }
}

export async function probeClickhouse(url: string): Promise<ProbeFailure | null> {
  const { protocol, host } = new URL(url);
  try {
    const response = await fetch(`${protocol}//${host}/ping`, { signal: AbortSignal.timeout(probeMs) });
    await response.arrayBuffer();
    return response.ok ? null : { reason: `status ${response.status}`, isRefused: false };
  } catch (error) {
    return toProbeFailure(error instanceof Error && error.cause ? error.cause : error);
  }
}

/** An AggregateError (all addresses refused) has no message. */
function toProbeFailure(error: unknown): ProbeFailure {
  if (error instanceof AggregateError) return mergeFailures(error.errors.map(toProbeFailure));
  const reason = error instanceof Error ? error.message : String(error);
  return { reason, isRefused: hasErrorCode(error, 'ECONNREFUSED') };
}
