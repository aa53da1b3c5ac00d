/**
 * A connection for the commands of answers alone. ioredis connects, authenticates, encrypts and reconnects; commands and
 * replies go past it: its object, queue entry and dispatch for each cost a worker more than all that it does with them
 * (docs/performance.md).
 */
import { once } from 'node:events';
import { Redis } from 'ioredis';
import {
  codeOf,
  commandTimeoutMs,
  connectTimeoutMs,
  hotOptions,
  noteErrors,
  whenReady,
  whileRedisServes,
} from './client.js';
import type { CommandBytes } from './command-bytes.js';
import { createReplyReader, type Reply } from './replies.js';

export interface HotConnection {
  /** False for a connection to one master of a Cluster. */
  readonly reachesAll: boolean;
  /** How many replicas must have a write before it is confirmed, as of now. */
  waitReplicas(): number;
  /** Whether its server still is the master of the keys, as far as is known. */
  isMaster(): boolean;
  isOpen(): boolean;
  /** Resolves when commands may be sent. @throws ApiError UNAVAILABLE */
  ready(): Promise<void>;
  /** Identity of the socket: after a reconnect nothing is watched any more. */
  current(): object;
  /**
   * Sends commands in one write and returns their replies in order, an error reply as an Error in its place.
   * @throws Error where there is no connection, or it is lost before the last reply: what was carried out is not known
   */
  send(commands: CommandBytes): Promise<Reply[]>;
  /**
   * Leaves the connection where its Redis replied that another one serves now.
   * @param error of `send`, or a reply
   * @returns whether nothing was carried out, and the new server is known
   */
  leave(error: unknown): Promise<boolean>;
  close(): void;
}

/** @param url of a single Redis */
export function openHotConnection(
  url: string,
  waitReplicas: number,
  timeoutMs = commandTimeoutMs,
): HotConnection {
  const client = new Redis(url, hotOptions);
  const passing = passBy(client, timeoutMs);
  return {
    ...passing,
    reachesAll: true,
    waitReplicas: () => waitReplicas,
    isMaster: () => true,
    ready: async () => {
      // ioredis hears a little later that the connection ended.
      const ended = client.status === 'ready' && !passing.isOpen() ? once(client, 'close') : null;
      await whileRedisServes(Promise.resolve(ended).then(() => whenReady(client, connectTimeoutMs)));
    },
    leave: async (error) => {
      // What moves the master behind one address does not always end connections to the one before.
      if (codeOf(error) === 'READONLY') client.stream.destroy();
      return false;
    },
  };
}

/** @param client that nobody else uses: it connects, and is passed by */
export function passBy(
  client: Redis,
  timeoutMs: number,
): Pick<HotConnection, 'isOpen' | 'current' | 'send' | 'close'> {
  noteErrors(client);
  let line: Line | null = null;
  const isOpen = (): boolean => client.status === 'ready' && client.stream.writable === true;

  /** From the first bundle on ioredis reads nothing of a connection any more: its own commands were answered before. */
  function lineNow(): Line {
    const { stream } = client;
    if (!isOpen()) throw new Error('Connection is closed.');
    if (line?.stream !== stream) line = takeOver(stream);
    return line;
  }

  return {
    isOpen,
    current: () => client.stream,
    send: async (commands) => {
      const { exchange } = lineNow();
      return exchange(commands, timeoutMs);
    },
    close: () => client.disconnect(),
  };
}

interface Line {
  readonly stream: Redis['stream'];
  exchange(commands: CommandBytes, timeoutMs: number): Promise<Reply[]>;
}

/** Who waits for the replies of a bundle. */
interface Waiting {
  readonly count: number;
  readonly replies: Reply[];
  settle(error: Error | null): void;
}

function takeOver(stream: Redis['stream']): Line {
  const reader = createReplyReader();
  /** In the order in which they were sent. */
  const open: Waiting[] = [];

  function failAll(error: Error): void {
    for (const waiting of open.splice(0)) waiting.settle(error);
  }
  /** What follows on this connection could not be told apart any more. */
  function giveUp(error: Error): void {
    failAll(error);
    stream.destroy();
  }
  /** What came with a reply that nobody asked for cannot be trusted either: so all is read before anybody is told. */
  function takeReplies(): void {
    let complete = 0;
    for (let reply = reader.next(); reply !== undefined; reply = reader.next()) {
      const waiting = open[complete];
      if (waiting === undefined) throw new Error('Redis sent more than was asked for');
      if (waiting.replies.push(reply) === waiting.count) complete += 1;
    }
    for (const waiting of open.splice(0, complete)) waiting.settle(null);
  }

  stream.removeAllListeners('data');
  stream.on('data', (bytes: Buffer) => {
    try {
      reader.add(bytes);
      takeReplies();
    } catch (error) {
      giveUp(error as Error);
    }
  });
  stream.on('close', () => failAll(new Error('Connection is closed.')));

  return {
    stream,
    exchange: (commands, timeoutMs) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => giveUp(new Error('Command timed out')), timeoutMs);
        const replies: Reply[] = [];
        const settle = (error: Error | null): void => {
          clearTimeout(timer);
          if (error === null) resolve(replies);
          else reject(error);
        };
        open.push({ count: commands.count(), replies, settle });
        stream.write(commands.done(), () => commands.release());
      }),
  };
}
