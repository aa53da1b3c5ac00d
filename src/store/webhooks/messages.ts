import Type, { type Static } from 'typebox';
import { splitTenantName } from '../../contracts/learner-name.js';
import { createStoredParser } from '../../contracts/stored-json.js';
import { nullable } from '../../contracts/validate.js';
import { splitIntoParts } from '../../lists.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { endpointsKey, messagesKey, nextTriesKey } from '../redis/keys.js';
import { hashPages } from '../redis/reads.js';
import { replicated } from '../redis/replication.js';
import {
  addMessages,
  chunk,
  forgetMessages,
  keptMs,
  restEndpoint,
  settleMessages,
} from './message-scripts.js';

export interface EndpointPlace {
  readonly tenant: string;
  readonly id: string;
}

const State = Type.Object({
  v: Type.Literal(1),
  type: Type.String(),
  /** Time of the event, Unix milliseconds. */
  at: Type.Integer(),
  /** Since the message was added or retried manually. */
  tries: Type.Integer(),
  lastStatus: nullable(Type.Integer()),
  /** Reason for a missing response. */
  lastError: nullable(Type.String()),
  status: Type.Enum(['pending', 'delivered', 'failed']),
});
const parse = createStoredParser(State, 'a stored message');

export interface MessageState extends Omit<Static<typeof State>, 'v'> {
  readonly id: string;
}

export interface Message extends MessageState {
  readonly body: string;
}

export interface TriedMessage {
  readonly message: MessageState;
  /** Null: no further attempt. */
  readonly afterMs: number | null;
}

export type NewMessage = Pick<Message, 'id' | 'type' | 'at' | 'body'>;

export interface ListedMessage extends MessageState {
  /** Unix milliseconds; null: none. */
  readonly nextTryAt: number | null;
}

const encode = ({ type, at, tries, lastStatus, lastError, status }: MessageState): string =>
  JSON.stringify({ v: 1, type, at, tries, lastStatus, lastError, status });

function decode(id: string, text: string): MessageState {
  const { v: _, ...state } = parse(text);
  return { id, ...state };
}

export type MessageStore = ReturnType<typeof createMessageStore>;

/** Limits per endpoint. 200,000 listed messages take about 200 MB. */
export function createMessageStore(client: RedisClient, { waiting = 100_000, listed = 200_000 } = {}) {
  const own = ({ tenant, id }: EndpointPlace) =>
    [messagesKey(id), nextTriesKey, endpointsKey(tenant), `${tenant}:${id}`, id, listed] as const;

  const settle = (endpoint: EndpointPlace, tries: readonly TriedMessage[]): Promise<number> => {
    const texts = tries.flatMap(({ message, afterMs }) => [message.id, encode(message), afterMs ?? '']);
    return settleMessages(client, ...own(endpoint), ...texts);
  };

  return {
    settle,
    /** @returns number of rejected messages */
    add: async (endpoint: EndpointPlace, messages: readonly NewMessage[]): Promise<number> => {
      const fresh = { tries: 0, lastStatus: null, lastError: null, status: 'pending' } as const;
      let refused = 0;
      for (const part of splitIntoParts(messages, chunk)) {
        const texts = part.flatMap((one) => [one.id, encode({ ...one, ...fresh }), one.body]);
        refused += await replicated(client, nextTriesKey, () =>
          addMessages(client, ...own(endpoint), waiting, ...texts),
        );
      }
      return refused;
    },
    /** Longest due first. */
    endpointsDue: async (now: number, atMost: number): Promise<EndpointPlace[]> => {
      const names = client.zrangebyscore(nextTriesKey, '-inf', now, 'LIMIT', 0, atMost);
      return (await whileRedisServes(names)).map((name) => {
        const [tenant, id] = splitTenantName(name);
        return { tenant, id };
      });
    },
    due: async ({ id: endpoint }: EndpointPlace, now: number, atMost: number): Promise<Message[]> => {
      const prefix = messagesKey(endpoint);
      const tries = client.zrangebyscore(`${prefix}:due`, '-inf', 1000 * (now + 1), 'LIMIT', 0, atMost);
      const ids = await whileRedisServes(tries);
      if (ids.length === 0) return [];
      const read = [client.hmget(`${prefix}:s`, ...ids), client.hmget(`${prefix}:b`, ...ids)] as const;
      const [states, bodies] = await whileRedisServes(Promise.all(read));
      return ids.flatMap((id, i) => {
        const [state, body] = [states[i], bodies[i]];
        // An erasure may have deleted the message.
        return state && typeof body === 'string' ? [{ ...decode(id, state), body }] : [];
      });
    },
    rest: (endpoint: EndpointPlace, pauseMs: number): Promise<unknown> =>
      restEndpoint(client, ...own(endpoint), pauseMs),
    /** Unix milliseconds on Redis' clock; 0: none within `messageRetentionMs`. */
    lastDelivery: async ({ id }: EndpointPlace): Promise<number> =>
      Number(await whileRedisServes(client.get(`${messagesKey(id)}:last`))),
    /** Newest first. @param before mark of the previous page */
    list: async ({ id: endpoint }: EndpointPlace, before: string | null, atMost: number) => {
      const prefix = messagesKey(endpoint);
      const range = [before === null ? '+inf' : `(${before}`, 1000 * (Date.now() - keptMs)] as const;
      const page = client.zrevrangebyscore(`${prefix}:log`, ...range, 'WITHSCORES', 'LIMIT', 0, atMost + 1);
      const found = splitIntoParts(await whileRedisServes(page), 2) as [id: string, mark: string][];
      const shown = found.slice(0, atMost);
      const ids = shown.map(([id]) => id);
      if (ids.length === 0) return { messages: [], next: null };
      const read = [client.hmget(`${prefix}:s`, ...ids), client.zmscore(`${prefix}:due`, ...ids)] as const;
      const [states, tries] = await whileRedisServes(Promise.all(read));
      const messages = ids.flatMap((id, i): ListedMessage[] => {
        const [state, next] = [states[i], tries[i] ?? null];
        const nextTryAt = next === null ? null : Math.floor(Number(next) / 1000);
        return state ? [{ ...decode(id, state), nextTryAt }] : [];
      });
      return { messages, next: found.length > atMost ? (shown.at(-1)?.[1] ?? null) : null };
    },
    again: async (endpoint: EndpointPlace, messageId: string): Promise<boolean> => {
      const state = await whileRedisServes(client.hget(`${messagesKey(endpoint.id)}:s`, messageId));
      if (state === null) return false;
      const message = { ...decode(messageId, state), tries: 0, status: 'pending' } as const;
      return (await settle(endpoint, [{ message, afterMs: 0 }])) === 1;
    },
    forget: async (endpoint: EndpointPlace, messages: readonly Pick<Message, 'id'>[]): Promise<void> => {
      for (const part of splitIntoParts(messages, chunk)) {
        const ids = part.map(({ id }) => id);
        await forgetMessages(client, ...own(endpoint), ...ids);
      }
    },
    /** Unordered; a message may appear twice. */
    all: async function* ({ id: endpoint }: EndpointPlace) {
      for await (const page of hashPages(client, `${messagesKey(endpoint)}:s`, chunk))
        yield page.map(([id, text]) => decode(id, text));
    },
  };
}
