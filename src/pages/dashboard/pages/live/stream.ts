/** The service's live figures, as server-sent events. */
import { createParser } from 'eventsource-parser';
import { sleep } from '../../../../client/deadline.js';
import { SkilltraceError } from '../../../../client/errors.js';
import { standardRetry } from '../../../../client/retry.js';
import { Transport } from '../../../../client/transport.js';

export type LiveFigures = {
  readonly at: string;
  readonly processes: number;
  readonly answers_per_second: number | null;
  readonly requests_per_second: number | null;
  readonly errors: { readonly [field: string]: number } | null;
  readonly latency_ms: { readonly p50: number; readonly p90: number; readonly p99: number } | null;
  readonly outbox_length: number | null;
  readonly journal_length: number | null;
  readonly parked_rows: number | null;
  readonly lanes_waiting: number | null;
  readonly connections_open: number | null;
  readonly oldest_pending_seconds: number | null;
  readonly redis_up: boolean | null;
  readonly clickhouse_up: boolean | null;
  readonly redis_memory: { readonly used: number; readonly limit: number | null } | null;
};

/** Figures come each second: after so long a silence nobody is there. */
const silenceMs = 10_000;
const firstWaitMs = 1_000;
const longestWaitMs = 30_000;

/** EventSource can send no key, so they are read by `fetch`. @throws SkilltraceError */
async function* liveFigures(apiKey: string, signal: AbortSignal): AsyncGenerator<LiveFigures> {
  const transport = new Transport({
    ...{ baseUrl: location.origin, apiKey, timeoutMs: silenceMs },
    fetch: (...request) => fetch(...request),
    retry: { ...standardRetry, tries: 1 },
  });
  const arrived: LiveFigures[] = [];
  const parser = createParser({ onEvent: ({ data }) => arrived.push(JSON.parse(data)) });
  for await (const line of transport.lines({ method: 'GET', path: '/api/v1/live' }, { signal })) {
    parser.feed(`${line}\n`);
    yield* arrived.splice(0);
  }
}

interface Follower {
  readonly signal: AbortSignal;
  readonly onFigures: (figures: LiveFigures) => void;
  /** @param waitMs until it is tried again; null: it is not */
  readonly onLost: (error: unknown, waitMs: number | null) => void;
}

/** Reads them until the signal; a stream that ends or breaks is opened again, after waits that double. */
export async function followLive(apiKey: string, { signal, onFigures, onLost }: Follower): Promise<void> {
  let boundMs = firstWaitMs;
  while (!signal.aborted) {
    let error: unknown = new SkilltraceError('NETWORK_ERROR', 'The service ended the stream');
    try {
      for await (const figures of liveFigures(apiKey, signal)) {
        boundMs = firstWaitMs;
        onFigures(figures);
      }
    } catch (thrown) {
      error = thrown;
    }
    if (signal.aborted) return;
    if (isFinal(error)) return onLost(error, null);
    // A random share, so that pages that were cut together do not come back together.
    const waitMs = boundMs * (0.5 + Math.random() / 2);
    onLost(error, waitMs);
    // It rejects by the signal alone, which the loop looks at.
    await sleep(waitMs, signal).catch(() => undefined);
    boundMs = Math.min(longestWaitMs, 2 * boundMs);
  }
}

const isFinal = (error: unknown): boolean => !(error instanceof SkilltraceError) || !error.retryable;
