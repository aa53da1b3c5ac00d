import Type, { type Static } from 'typebox';
import { splitTenantName } from '../../contracts/learners/learner-name.js';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import { nullable } from '../../contracts/schema/validate.js';
import { splitIntoParts } from '../../lists.js';
import { readHashPages } from '../redis/commands/bulk-operations.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import { endpointsKey, messagesPrefix, nextDeliveriesKey } from '../redis/keys.js';
import {
  addMessagesScript,
  messageRetentionMs,
  messagesPerCommand,
  removeMessagesScript,
  scheduleRunScript,
  storeOutcomesScript,
} from './message-scripts.js';

export interface EndpointReference {
  readonly tenant: string;
  readonly id: string;
}

const StoredState = Type.Object({
  v: Type.Literal(1),
  /** May be unknown to this version. */
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
const parseState = createStoredParser(StoredState, 'a stored message');

export interface MessageState extends Omit<Static<typeof StoredState>, 'v'> {
  readonly id: string;
}

export interface Message extends MessageState {
  readonly body: string;
}

export interface MessageOutcome {
  readonly message: MessageState;
  /** Null: no further attempt. */
  readonly retryAfterMs: number | null;
}

export type NewMessage = Pick<Message, 'id' | 'type' | 'at' | 'body'>;

export interface ListedMessage extends MessageState {
  /** Unix milliseconds; null: none. */
  readonly nextTryAt: number | null;
}

const encode = ({ type, at, tries, lastStatus, lastError, status }: MessageState): string =>
  JSON.stringify({ v: 1, type, at, tries, lastStatus, lastError, status });

function decode(id: string, text: string): MessageState {
  const { v: _, ...state } = parseState(text);
  return { id, ...state };
}

export type MessageStore = ReturnType<typeof createMessageStore>;

/** Limits per endpoint. 200,000 listed messages take about 200 MB. */
export function createMessageStore(client: RedisClient, { waiting = 100_000, listed = 200_000 } = {}) {
  const endpointArguments = ({ tenant, id }: EndpointReference) =>
    [messagesPrefix(id), nextDeliveriesKey, endpointsKey(tenant), `${tenant}:${id}`, id, listed] as const;

  const storeOutcomes = (endpoint: EndpointReference, tries: readonly MessageOutcome[]): Promise<number> => {
    const texts = tries.flatMap(({ message, retryAfterMs }) => [
      message.id,
      encode(message),
      retryAfterMs ?? '',
    ]);
    return storeOutcomesScript(client, ...endpointArguments(endpoint), ...texts);
  };

  return {
    settle: storeOutcomes,
    /** @returns number of rejected messages */
    add: async (endpoint: EndpointReference, messages: readonly NewMessage[]): Promise<number> => {
      const fresh = { tries: 0, lastStatus: null, lastError: null, status: 'pending' } as const;
      let rejected = 0;
      for (const part of splitIntoParts(messages, messagesPerCommand)) {
        const texts = part.flatMap((one) => [one.id, encode({ ...one, ...fresh }), one.body]);
        rejected += await withReplication(client, nextDeliveriesKey, () =>
          addMessagesScript(client, ...endpointArguments(endpoint), waiting, ...texts),
        );
      }
      return rejected;
    },
    /** Longest due first. */
    listDueEndpoints: async (now: number, atMost: number): Promise<EndpointReference[]> => {
      const names = client.zrangebyscore(nextDeliveriesKey, '-inf', now, 'LIMIT', 0, atMost);
      return (await mapRedisErrors(names)).map((name) => {
        const [tenant, id] = splitTenantName(name);
        return { tenant, id };
      });
    },
    listDue: async ({ id: endpoint }: EndpointReference, now: number, atMost: number): Promise<Message[]> => {
      const prefix = messagesPrefix(endpoint);
      const tries = client.zrangebyscore(`${prefix}:due`, '-inf', 1000 * (now + 1), 'LIMIT', 0, atMost);
      const ids = await mapRedisErrors(tries);
      if (ids.length === 0) return [];
      const read = [client.hmget(`${prefix}:s`, ...ids), client.hmget(`${prefix}:b`, ...ids)] as const;
      const [states, bodies] = await mapRedisErrors(Promise.all(read));
      return ids.flatMap((id, i) => {
        const [state, body] = [states[i], bodies[i]];
        // An erasure may have deleted the message.
        return state && typeof body === 'string' ? [{ ...decode(id, state), body }] : [];
      });
    },
    scheduleNextRun: (endpoint: EndpointReference, pauseMs: number): Promise<unknown> =>
      scheduleRunScript(client, ...endpointArguments(endpoint), pauseMs),
    /** Unix milliseconds on Redis' clock; 0: none within `messageRetentionMs`. */
    fetchLastDelivery: async ({ id }: EndpointReference): Promise<number> =>
      Number(await mapRedisErrors(client.get(`${messagesPrefix(id)}:last`))),
    /** Newest first. @param before mark of the previous page */
    list: async ({ id: endpoint }: EndpointReference, before: string | null, atMost: number) => {
      const prefix = messagesPrefix(endpoint);
      const range = [
        before === null ? '+inf' : `(${before}`,
        1000 * (Date.now() - messageRetentionMs),
      ] as const;
      const page = client.zrevrangebyscore(`${prefix}:log`, ...range, 'WITHSCORES', 'LIMIT', 0, atMost + 1);
      const found = splitIntoParts(await mapRedisErrors(page), 2) as [id: string, mark: string][];
      const shown = found.slice(0, atMost);
      const ids = shown.map(([id]) => id);
      if (ids.length === 0) return { messages: [], next: null };
      const read = [client.hmget(`${prefix}:s`, ...ids), client.zmscore(`${prefix}:due`, ...ids)] as const;
      const [states, tries] = await mapRedisErrors(Promise.all(read));
      const messages = ids.flatMap((id, i): ListedMessage[] => {
        const [state, next] = [states[i], tries[i] ?? null];
        const nextTryAt = next === null ? null : Math.floor(Number(next) / 1000);
        return state ? [{ ...decode(id, state), nextTryAt }] : [];
      });
      return { messages, next: found.length > atMost ? (shown.at(-1)?.[1] ?? null) : null };
    },
    retry: async (endpoint: EndpointReference, messageId: string): Promise<boolean> => {
      const state = await mapRedisErrors(client.hget(`${messagesPrefix(endpoint.id)}:s`, messageId));
      if (state === null) return false;
      const message = { ...decode(messageId, state), tries: 0, status: 'pending' } as const;
      return (await storeOutcomes(endpoint, [{ message, retryAfterMs: 0 }])) === 1;
    },
    remove: async (endpoint: EndpointReference, messages: readonly Pick<Message, 'id'>[]): Promise<void> => {
      for (const part of splitIntoParts(messages, messagesPerCommand)) {
        const ids = part.map(({ id }) => id);
        await removeMessagesScript(client, ...endpointArguments(endpoint), ...ids);
      }
    },
    /** Unordered; a message may appear twice. */
    listAll: async function* ({ id: endpoint }: EndpointReference) {
      for await (const page of readHashPages(client, `${messagesPrefix(endpoint)}:s`, messagesPerCommand))
        yield page.map(([id, text]) => decode(id, text));
    },
  };
}
