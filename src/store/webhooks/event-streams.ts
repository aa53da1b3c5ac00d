/** Streams of events that are not handed to endpoints: one in each partition, one of models. */
import { learnerHashOf } from '../../contracts/webhook-events.js';
import { byPartition, groupedBy, indices, sumOf } from '../../lists.js';
import { findErased } from '../corrections/erased-learners.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { eventsKey, modelEventsKey } from '../redis/keys.js';
import { fieldOf, streamLengths, type TextEntry } from '../redis/reads.js';
import type { NewMessage } from './messages.js';

export interface WaitingEvent extends NewMessage {
  readonly tenant: string;
  /** Its stream, and the entry there. */
  readonly source: string;
  readonly entry: string;
  /** Of the learner; null for an event of no learner. */
  readonly partition: number | null;
}

/** Of one stream: a fraction of a millisecond of Redis. */
const pageEvents = 500;

export type EventStreams = ReturnType<typeof createEventStreams>;

/** Its functions throw ApiError UNAVAILABLE. */
export function createEventStreams(client: RedisClient, partitions: number) {
  const sources = [
    { source: modelEventsKey, partition: null },
    ...indices(partitions).map((partition) => ({ source: eventsKey(partition), partition })),
  ];
  const streams = sources.map(({ source }) => source);

  const pageOf = async ({ source, partition }: (typeof sources)[number]): Promise<WaitingEvent[]> => {
    const page = await whileRedisServes(client.xrange(source, '-', '+', 'COUNT', pageEvents));
    return page.map((entry) => readEvent(source, partition, entry));
  };

  return {
    /** The oldest events of every stream, each stream's in their order. */
    next: async (): Promise<WaitingEvent[]> => (await Promise.all(sources.map(pageOf))).flat(),
    /** How many wait. */
    waiting: async (): Promise<number> => sumOf(await streamLengths(client, streams)),
    /** Events of learners who were erased after them. */
    ofErased: async (events: readonly WaitingEvent[]): Promise<WaitingEvent[]> => {
      const late: WaitingEvent[] = [];
      const ofLearners = events.flatMap((event) => {
        const [hash, { partition }] = [learnerHashOf(event.id), event];
        return hash === null || partition === null ? [] : [{ event, hash, partition }];
      });
      for (const [partition, own] of byPartition(ofLearners)) {
        const hashes = own.map(({ hash }) => hash);
        const erased = await findErased(client, partition, hashes);
        late.push(...own.flatMap(({ event }, i) => (event.at <= (erased[i]?.at ?? 0) ? [event] : [])));
      }
      return late;
    },
    remove: async (events: readonly WaitingEvent[]): Promise<void> => {
      for (const [source, own] of groupedBy(events, (event) => event.source))
        await whileRedisServes(client.xdel(source, ...own.map(({ entry }) => entry)));
    },
  };
}

function readEvent(source: string, partition: number | null, [entry, fields]: TextEntry): WaitingEvent {
  const text = (name: string): string => fieldOf(fields, name) ?? '';
  return {
    ...{ source, entry, partition },
    ...{ id: text('i'), tenant: text('t'), type: text('y'), body: text('b') },
    // Redis' clock, as of the erasures.
    at: Number.parseInt(entry, 10),
  };
}
