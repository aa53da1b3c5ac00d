/** Events not yet turned into messages: a stream per partition, and one for models. */
import { parseLearnerHash } from '../../contracts/webhook-events.js';
import { computeSum, indices } from '../../lists.js';
import { findErased } from '../corrections/erased-learners.js';
import type { RedisClient } from '../redis/client.js';
import { eventsKey, modelEventsKey } from '../redis/keys.js';
import { fieldOf, removeEntries, repliesTo, streamLengths, type TextEntry } from '../redis/reads.js';

export type WaitingEvent = ReturnType<typeof readEvent>;
export type EventStreams = ReturnType<typeof createEventStreams>;

export function createEventStreams(client: RedisClient, partitions: number) {
  const sources = [
    { source: modelEventsKey, partition: null },
    ...indices(partitions).map((partition) => ({ source: eventsKey(partition), partition })),
  ];
  const streams = sources.map(({ source }) => source);

  return {
    next: async (atMost: number): Promise<{ events: WaitingEvent[]; hasMore: boolean }> => {
      const ofStream = Math.ceil(atMost / streams.length);
      const asked = streams.map((source) => ['xrange', source, '-', '+', 'COUNT', ofStream] as const);
      const pages = await repliesTo<TextEntry[]>(client, asked);
      const events = sources.flatMap(({ source, partition }, i) =>
        (pages[i] ?? []).map((entry) => readEvent(source, partition, entry)),
      );
      return { events, hasMore: pages.some(({ length }) => length === ofStream) };
    },
    waiting: async (): Promise<number> => computeSum(await streamLengths(client, streams)),
    ofErased: async (events: readonly WaitingEvent[]): Promise<WaitingEvent[]> => {
      const ofLearners = events.flatMap((event) => {
        const [{ partition }, hash] = [event, parseLearnerHash(event.id)];
        return partition === null || hash === null ? [] : [{ event, partition, hash }];
      });
      const erased = await findErased(client, ofLearners);
      return ofLearners.flatMap(({ event }, i) => (event.at <= (erased[i]?.at ?? 0) ? [event] : []));
    },
    remove: (events: readonly WaitingEvent[]) => removeEntries(client, events),
  };
}

function readEvent(source: string, partition: number | null, [entry, fields]: TextEntry) {
  const text = (name: string): string => fieldOf(fields, name) ?? '';
  return {
    ...{ source, entry, partition },
    ...{ id: text('i'), tenant: text('t'), type: text('y'), body: text('b') },
    // Redis' clock, like `at` of erasures.
    at: Number.parseInt(entry, 10),
  };
}
