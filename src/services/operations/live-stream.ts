/** Server-sent events (WHATWG HTML, 9.2). */
import { setTimeout as sleep } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import { createPermits, singleFlightByName } from '../../concurrency.js';
import type { Grant } from '../../contracts/access/access.js';
import { unavailable } from '../../errors.js';
import { createLiveMetrics, type ReportedMetric } from './live-metrics.js';

export const LiveQuery = Type.Object({
  events: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 86_400,
      description: 'Number of events after which the stream ends; no limit by default.',
    }),
  ),
});
export type LiveQuery = Static<typeof LiveQuery>;

export interface LivePorts {
  readonly collect: () => Promise<readonly (readonly ReportedMetric[])[]>;
  /** Null if the key is revoked. @throws ApiError UNAVAILABLE */
  readonly findKey: (keyHash: string) => Promise<Grant | null>;
}

const maxStreams = 20;
const secondMs = 1000;
const keyCheckMs = 2000;

export type LiveStream = ReturnType<typeof createLiveStream>;

/** Collects metrics once a second for all streams. */
export function createLiveStream({ collect, findKey }: LivePorts) {
  const slots = createPermits(maxStreams, maxStreams);
  const closing = new AbortController();
  const find = singleFlightByName(findKey);
  const figures = createLiveMetrics();
  let sampled = { second: -1, event: Promise.resolve('') };

  const getEvent = (second: number): Promise<string> => {
    if (sampled.second < second) sampled = { second, event: sample() };
    return sampled.event;
  };
  const sample = async (): Promise<string> => {
    const all = await collect();
    return `data: ${JSON.stringify(figures(all, performance.now(), new Date()))}\n\n`;
  };

  async function* generateEvents(grant: Grant, count: number): AsyncGenerator<string> {
    const ending = new AbortController();
    const check = setInterval(() => {
      const end = (now: Grant | null): void => {
        if (!now?.scopes.includes('operator')) ending.abort();
      };
      // Without Redis the key cannot be checked. Operators need the stream most then.
      find(grant.keyHash).then(end, () => undefined);
    }, keyCheckMs);
    const signal = AbortSignal.any([closing.signal, ending.signal]);
    try {
      for (let sent = 0; ; ) {
        const second = Math.floor(performance.now() / secondMs);
        yield await getEvent(second);
        sent += 1;
        if (sent === count) return;
        while (!signal.aborted && performance.now() < (second + 1) * secondMs)
          await sleep((second + 1) * secondMs - performance.now(), null, { signal }).catch(() => null);
        if (signal.aborted) return;
      }
    } finally {
      clearInterval(check);
    }
  }

  return {
    /** Call the returned `release` once, when the stream has ended. @throws ApiError UNAVAILABLE */
    open: (grant: Grant, { events = Number.POSITIVE_INFINITY }: LiveQuery) => {
      if (!slots.isFree(''))
        throw unavailable(`The maximum of ${maxStreams} live streams is reached; retry later.`);
      slots.acquire('');
      return { events: generateEvents(grant, events), release: () => slots.release('') };
    },
    close: (): void => closing.abort(),
  };
}
