/** Events not yet turned into messages: a stream per partition, and one for models. */
import { parseLearnerHash } from '../../contracts/webhooks/webhook-events.js';
import { computeSum, indices } from '../../lists.js';
import { findErasedLearners } from '../corrections/erased-learners.js';
import {
  fetchStreamLengths,
  findField,
  removeStreamEntries,
  type StreamEntry,
  sendCommands,
} from '../redis/commands/bulk-operations.js';
import type { RedisClient } from '../redis/connection/client.js';
import { modelEventsKey, webhookEventsKey } from '../redis/keys.js';

export type PendingEvent = ReturnType<typeof decodeEvent>;
export type EventStreams = ReturnType<typeof createEventStreams>;

export function createEventStreams(client: RedisClient, partitions: number) {
  const sources = [
    { source: modelEventsKey, partition: null },
    ...indices(partitions).map((partition) => ({ source: webhookEventsKey(partition), partition })),
  ];
  const streams = sources.map(({ source }) => source);

  return {
    readOldest: async (atMost: number): Promise<{ events: PendingEvent[]; hasMore: boolean }> => {
      const perStream = Math.ceil(atMost / streams.length);
      const commands = streams.map((source) => ['xrange', source, '-', '+', 'COUNT', perStream] as const);
      const pages = await sendCommands<StreamEntry[]>(client, commands);
      const events = sources.flatMap(({ source, partition }, i) =>
        (pages[i] ?? []).map((entry) => decodeEvent(source, partition, entry)),
      );
      return { events, hasMore: pages.some(({ length }) => length === perStream) };
    },
    countPending: async (): Promise<number> => computeSum(await fetchStreamLengths(client, streams)),
    findErased: async (events: readonly PendingEvent[]): Promise<PendingEvent[]> => {
      const located = events.flatMap((event) => {
        const [{ partition }, hash] = [event, parseLearnerHash(event.id)];
        return partition === null || hash === null ? [] : [{ event, partition, hash }];
      });
      const erased = await findErasedLearners(client, located);
      return located.flatMap(({ event }, i) => (event.at <= (erased[i]?.at ?? 0) ? [event] : []));
    },
    remove: (events: readonly PendingEvent[]) => removeStreamEntries(client, events),
  };
}

function decodeEvent(source: string, partition: number | null, [entry, fields]: StreamEntry) {
  const text = (name: string): string => findField(fields, name) ?? '';
  return {
    ...{ source, entry, partition },
    ...{ id: text('i'), tenant: text('t'), type: text('y'), body: text('b') },
    // Redis' clock, like `at` of erasures.
    at: Number.parseInt(entry, 10),
  };
}
