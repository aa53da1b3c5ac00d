/** Many commands in one write. */
import type { Redis } from 'ioredis';
import type { CommandBytes } from './command-bytes.js';

/** As ioredis reads them: texts are bytes. */
export type Reply = Buffer | number | null | Error | Reply[];

/**
 * What ioredis keeps of a command that waits for its reply. One object takes all replies of a bundle: ioredis's own
 * pipelines make one for each command, which took a third of a worker's time.
 */
interface Waiting {
  readonly command: {
    readonly name: string;
    readonly args: readonly string[];
    resolve(reply: Reply): void;
    reject(error: Error): void;
  };
}

/** The part of ioredis that it keeps to itself; its version is pinned, and a test reads what comes back (bundle.test.ts). */
interface Internals {
  readonly commandQueue: { push(waiting: Waiting): void };
}

/**
 * Sends commands as they are written and gives their replies in order, an error reply as an Error at its place.
 *
 * @param timeoutMs after this long without all the replies it counts as failed
 * @throws Error where the connection is not there, or is lost before the last reply; what was carried out is not known
 */
export function sendBundle(client: Redis, commands: CommandBytes, timeoutMs: number): Promise<Reply[]> {
  return new Promise((resolve, reject) => {
    const { stream } = client;
    if (client.status !== 'ready' || !stream?.writable) throw new Error('Connection is closed.');
    const replies: Reply[] = [];
    const count = commands.count();
    const timer = setTimeout(() => reject(new Error('Command timed out')), timeoutMs);
    const take = (reply: Reply): void => {
      if (replies.push(reply) < count) return;
      clearTimeout(timer);
      resolve(replies);
    };
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
    };
    const waiting: Waiting = {
      command: {
        name: 'bundle',
        args: [],
        resolve: take,
        reject: (error) => (error.name === 'ReplyError' ? take(error) : fail(error)),
      },
    };
    const { commandQueue } = client as unknown as Internals;
    for (let i = 0; i < count; i++) commandQueue.push(waiting);
    stream.write(commands.done(), () => commands.release());
  });
}

/** Replies to be taken one after another. */
export interface Replies {
  skip(count: number): void;
  number(): number;
  list(): readonly (Buffer | null)[];
  bytes(): Buffer | null;
}

/** @throws Error the first error reply */
export function readReplies(replies: readonly Reply[]): Replies {
  refuseErrors(replies);
  let at = 0;
  return {
    skip: (count) => {
      at += count;
    },
    number: () => Number(replies[at++]),
    list: () => replies[at++] as (Buffer | null)[],
    bytes: () => replies[at++] as Buffer | null,
  };
}

/**
 * What the commands of a transaction gave, of a bundle that ends with its EXEC; null where something watched was written.
 * @throws Error the first error reply: of a command that was refused, which refuses all; or of one that failed
 */
export function transactionOf(replies: readonly Reply[]): readonly Reply[] | null {
  refuseErrors(replies);
  const results = replies.at(-1) as Reply[] | null;
  if (results !== null) refuseErrors(results);
  return results;
}

function refuseErrors(replies: readonly Reply[]): void {
  for (const reply of replies) if (reply instanceof Error) throw reply;
}
