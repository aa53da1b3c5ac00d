/**
 * Messages to endpoints in Redis. Each endpoint has, behind its prefix: `:s`, states by message id; `:b`, bodies; `:log`, ids by
 * the time at which they came; `:due`, ids of those that wait, by the time of the next try. All are of one slot.
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { webhookTypes } from '../../contracts/webhook-events.js';
import { inParts } from '../../lists.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { lastDeliveriesKey, messagesKey, nextTriesKey } from '../redis/keys.js';
import { replicated } from '../redis/replication.js';
import { defineScript } from '../redis/script.js';

/** Messages that wait for one endpoint. */
const maxWaiting = 100_000;
/** Messages that are listed, with those that wait: about 200 MB. */
const maxListed = 200_000;
const keptMs = 7 * 86_400_000;
/** Messages of a command: a fraction of a millisecond of Redis. */
const chunk = 200;

export interface EndpointPlace {
  readonly tenant: string;
  readonly id: string;
}

const State = Type.Object({
  v: Type.Literal(1),
  type: Type.Enum([...webhookTypes]),
  /** When the event was decided, Unix milliseconds. */
  at: Type.Integer(),
  /** Since it was handed to the endpoint, or sent again by hand. */
  tries: Type.Integer(),
  /** Status of the last response; null where there was none. */
  lastStatus: Type.Union([Type.Integer(), Type.Null()]),
  status: Type.Enum(['pending', 'delivered', 'failed']),
});
const stateCheck = Compile(State);
export type MessageState = Omit<Static<typeof State>, 'v'>;

export interface NewMessage extends Pick<MessageState, 'type' | 'at'> {
  readonly id: string;
  readonly body: string;
}

export interface Message extends MessageState {
  readonly id: string;
  readonly body: string;
}

export interface ListedMessage extends MessageState {
  readonly id: string;
  /** Unix milliseconds; null where none is to come. */
  readonly nextTryAt: number | null;
}

const encode = (state: MessageState): string => JSON.stringify({ v: 1, ...state });

/** @throws Error for what this version of the service cannot read */
function decode(text: string): MessageState {
  const stored: unknown = JSON.parse(text);
  if (!stateCheck.Check(stored)) throw new Error('a stored message is not known to this version');
  const { v: _, ...state } = stored;
  return state;
}

/** Times in `:log` and `:due` are Unix microseconds, so that no two messages have the same. */
const keysLua = `
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local millis = math.floor(micros / 1000)
local prefix, next = KEYS[1], KEYS[2]
local states, bodies, log, due = prefix .. ':s', prefix .. ':b', prefix .. ':log', prefix .. ':due'
local function forget(id)
  redis.call('HDEL', states, id)
  redis.call('HDEL', bodies, id)
  redis.call('ZREM', log, id)
  redis.call('ZREM', due, id)
end
`;

/**
 * Adds messages that are not there, in their order: no two have the same time.
 * KEYS: prefix, next tries. ARGV: endpoint, most that wait, most that are listed, milliseconds for which all is kept, then of
 * each message id, state and body. Result: for how many there was no room.
 */
const addMessages = defineScript(2)<
  [prefix: string, next: string, endpoint: string, ...limits: [number, number, number], ...string[]],
  number
>(`
${keysLua}
local last = tonumber(redis.call('ZREVRANGE', log, 0, 0, 'WITHSCORES')[2] or 0)
local room = tonumber(ARGV[2]) - redis.call('ZCARD', due)
local refused = 0
for i = 5, #ARGV, 3 do
  if redis.call('HEXISTS', states, ARGV[i]) == 0 then
    if room <= 0 then
      refused = refused + 1
    else
      room = room - 1
      last = math.max(micros, last + 1)
      local time = string.format('%.0f', last)
      redis.call('HSET', states, ARGV[i], ARGV[i + 1])
      redis.call('HSET', bodies, ARGV[i], ARGV[i + 2])
      redis.call('ZADD', log, time, ARGV[i])
      redis.call('ZADD', due, time, ARGV[i])
      redis.call('ZADD', next, 'LT', millis, ARGV[1])
    end
  end
end
-- Old ones go, and the oldest of very many that do not wait any more.
local over = redis.call('ZCARD', log) - tonumber(ARGV[3])
for i, id in ipairs(redis.call('ZRANGE', log, 0, #ARGV)) do
  local isOld = tonumber(redis.call('ZSCORE', log, id)) < micros - 1000 * tonumber(ARGV[4])
  if not isOld and i > over then break end
  if isOld or not redis.call('ZSCORE', due, id) then forget(id) end
end
for _, key in ipairs({ states, bodies, log, due }) do redis.call('PEXPIRE', key, ARGV[4]) end
return refused
`);

/**
 * Notes what became of a try; nothing for a message that was forgotten meanwhile.
 * KEYS: prefix, next tries. ARGV: endpoint, id, state, milliseconds until the next try or '' for none, whether that is also the
 * endpoint's next. Result: 1 if the message is there.
 */
const settleMessage = defineScript(2)<
  [
    prefix: string,
    next: string,
    endpoint: string,
    id: string,
    state: string,
    after: number | '',
    wake: 0 | 1,
  ],
  number
>(`
${keysLua}
if redis.call('HEXISTS', states, ARGV[2]) == 0 then return 0 end
redis.call('HSET', states, ARGV[2], ARGV[3])
if ARGV[4] == '' then
  redis.call('ZREM', due, ARGV[2])
else
  local at = millis + tonumber(ARGV[4])
  redis.call('ZADD', due, string.format('%.0f', 1000 * at), ARGV[2])
  if ARGV[5] == '1' then redis.call('ZADD', next, 'LT', at, ARGV[1]) end
end
return 1
`);

/**
 * Ends a run of an endpoint: its next is that of its first message, but not before a pause is over.
 * KEYS: prefix, next tries. ARGV: endpoint, milliseconds of the pause.
 */
const restEndpoint = defineScript(2)<[prefix: string, next: string, endpoint: string, pause: number], null>(`
${keysLua}
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
if not first then
  redis.call('ZREM', next, ARGV[1])
else
  redis.call('ZADD', next, math.max(math.floor(first / 1000), millis + tonumber(ARGV[2])), ARGV[1])
end
`);

/** KEYS: prefix, next tries. ARGV: ids. */
const forgetMessages = defineScript(2)<[prefix: string, next: string, ...ids: string[]], null>(`
${keysLua}
for _, id in ipairs(ARGV) do forget(id) end
`);

export type MessageStore = ReturnType<typeof createMessageStore>;

const nameOf = ({ tenant, id }: EndpointPlace): string => `${tenant}:${id}`;

/** Its functions throw ApiError UNAVAILABLE. @param limit messages that may wait for one endpoint */
export function createMessageStore(client: RedisClient, limit = maxWaiting) {
  const keysOf = (id: string) => [messagesKey(id), nextTriesKey] as const;
  const settle = async (
    endpoint: EndpointPlace,
    { id, body: _, ...state }: MessageState & { readonly id: string; readonly body?: string },
    afterMs: number | null,
    wake: boolean,
  ): Promise<boolean> => {
    const args = [nameOf(endpoint), id, encode(state), afterMs ?? '', wake ? 1 : 0] as const;
    return (await whileRedisServes(settleMessage(client, ...keysOf(endpoint.id), ...args))) === 1;
  };

  /** Of ids, in their order, those that are there. */
  async function statesOf(endpoint: EndpointPlace, ids: readonly string[]) {
    if (ids.length === 0) return [];
    const found = await whileRedisServes(client.hmget(`${messagesKey(endpoint.id)}:s`, ...ids));
    return ids.flatMap((id, i) => (found[i] ? [{ id, ...decode(found[i]) }] : []));
  }

  return {
    /** Those that are there stay as they are. @returns for how many there was no room */
    add: async (endpoint: EndpointPlace, messages: readonly NewMessage[]): Promise<number> => {
      let refused = 0;
      for (const part of inParts(messages, chunk)) {
        const args = part.flatMap(({ id, type, at, body }) => {
          const state = { type, at, tries: 0, lastStatus: null, status: 'pending' } as const;
          return [id, encode(state), body];
        });
        const limits = [limit, maxListed, keptMs] as const;
        refused += await replicated(client, nextTriesKey, () =>
          whileRedisServes(addMessages(client, ...keysOf(endpoint.id), nameOf(endpoint), ...limits, ...args)),
        );
      }
      return refused;
    },
    /** Endpoints whose next try is due, the longest due first. @param now Unix milliseconds */
    endpointsDue: async (now: number, atMost: number): Promise<EndpointPlace[]> => {
      const names = client.zrangebyscore(nextTriesKey, '-inf', now, 'LIMIT', 0, atMost);
      return (await whileRedisServes(names)).map((name) => {
        const colon = name.indexOf(':');
        return { tenant: name.slice(0, colon), id: name.slice(colon + 1) };
      });
    },
    /** Messages whose next try is due, in its order. @param now Unix milliseconds */
    due: async (endpoint: EndpointPlace, now: number, atMost: number): Promise<Message[]> => {
      const prefix = messagesKey(endpoint.id);
      const ids = client.zrangebyscore(`${prefix}:due`, '-inf', 1000 * (now + 1), 'LIMIT', 0, atMost);
      const states = await statesOf(endpoint, await whileRedisServes(ids));
      if (states.length === 0) return [];
      const bodies = client.hmget(`${prefix}:b`, ...states.map(({ id }) => id));
      const found = await whileRedisServes(bodies);
      return states.map((state, i) => ({ ...state, body: found[i] ?? '' }));
    },
    /** Notes what became of a try. @param afterMs until the next; null: there is none */
    settle: (endpoint: EndpointPlace, message: Message, afterMs: number | null) =>
      settle(endpoint, message, afterMs, false),
    /** To be called at the end of a run, for what is due then or later. @param pauseMs of the endpoint */
    rest: (endpoint: EndpointPlace, pauseMs: number): Promise<unknown> =>
      whileRedisServes(restEndpoint(client, ...keysOf(endpoint.id), nameOf(endpoint), pauseMs)),
    noteDelivery: (endpoint: EndpointPlace, now: number): Promise<unknown> =>
      whileRedisServes(client.hset(lastDeliveriesKey, endpoint.id, now)),
    /** Unix milliseconds; 0 before the first. */
    lastDelivery: async ({ id }: EndpointPlace): Promise<number> =>
      Number((await whileRedisServes(client.hget(lastDeliveriesKey, id))) ?? 0),
    /** Newest first. @param before mark of the last one of the page before, null for the first page */
    list: async (endpoint: EndpointPlace, before: string | null, atMost: number) => {
      const prefix = messagesKey(endpoint.id);
      const to = before === null ? '+inf' : `(${before}`;
      const page = client.zrevrangebyscore(`${prefix}:log`, to, '-inf', 'WITHSCORES', 'LIMIT', 0, atMost);
      const found = inParts(await whileRedisServes(page), 2) as [id: string, mark: string][];
      if (found.length === 0) return { messages: [], next: null };
      const ids = found.map(([id]) => id);
      const tries = await whileRedisServes(client.zmscore(`${prefix}:due`, ...ids));
      const nextOf = new Map(ids.map((id, i) => [id, tries[i] ?? null]));
      const messages = (await statesOf(endpoint, ids)).map((state): ListedMessage => {
        const next = nextOf.get(state.id) ?? null;
        return { ...state, nextTryAt: next === null ? null : Math.floor(Number(next) / 1000) };
      });
      return { messages, next: found.length === atMost ? (found.at(-1)?.[1] ?? null) : null };
    },
    /** Sends a message again, now. @returns false for one that is not there */
    again: async (endpoint: EndpointPlace, messageId: string): Promise<boolean> => {
      const [state] = await statesOf(endpoint, [messageId]);
      if (state === undefined) return false;
      return settle(endpoint, { ...state, tries: 0, status: 'pending' }, 0, true);
    },
    forget: async (endpoint: EndpointPlace, ids: readonly string[]): Promise<void> => {
      for (const part of inParts(ids, chunk))
        await whileRedisServes(forgetMessages(client, ...keysOf(endpoint.id), ...part));
    },
    /** Every message of the endpoint, in no order, some perhaps twice. */
    all: async function* (endpoint: EndpointPlace) {
      for (let cursor = '0'; ; ) {
        const key = `${messagesKey(endpoint.id)}:s`;
        const [next, fields] = await whileRedisServes(client.hscan(key, cursor, 'COUNT', chunk));
        yield (inParts(fields, 2) as [string, string][]).map(([id, text]) => ({ id, ...decode(text) }));
        if (next === '0') return;
        cursor = next;
      }
    },
    /** All that is kept of an endpoint that is no more. */
    remove: async (endpoint: EndpointPlace): Promise<void> => {
      const prefix = messagesKey(endpoint.id);
      await whileRedisServes(client.zrem(nextTriesKey, nameOf(endpoint)));
      await whileRedisServes(client.hdel(lastDeliveriesKey, endpoint.id));
      await whileRedisServes(client.unlink(...[':s', ':b', ':log', ':due'].map((name) => prefix + name)));
    },
  };
}
