/** What the replies of commands that were sent together mean. */
import type { Reply } from './reply-reader.js';

/** Replies to be taken one after another. Each must be what is asked for: one out of place could tell a lie. */
export interface Replies {
  skip(count: number): void;
  list(): readonly (Buffer | null)[];
}

/** @throws Error the first error reply */
export function readReplies(replies: readonly Reply[]): Replies {
  for (const reply of replies) if (reply instanceof Error) throw reply;
  let at = 0;
  return {
    skip: (count) => {
      at += count;
    },
    list: () => {
      const reply = replies[at++];
      return Array.isArray(reply) ? (reply as (Buffer | null)[]) : misplaced(reply);
    },
  };
}

function misplaced(reply: Reply | undefined): never {
  throw new Error(`Redis sent something else than was asked for: ${typeof reply}`);
}

/** What became of a transaction. */
export interface Outcome {
  /** Not where something watched was written. */
  readonly done: boolean;
  /** How many replicas have it, as WAIT behind it tells; 0 where that was not asked. */
  readonly reached: number;
}

/**
 * @param commands of the transaction, between MULTI and EXEC
 * @param replies to MULTI, these, EXEC, and WAIT where that is asked
 * @throws Error the first error reply: of a command that was refused, which refuses all; or of one that failed. WAIT's is
 * none of the transaction's: no replica is known to have it
 */
export function outcomeOf(commands: number, replies: readonly Reply[]): Outcome {
  const [exec, wait] = replies.slice(commands + 1);
  readReplies(replies.slice(0, commands + 2));
  if (exec === null) return { done: false, reached: 0 };
  if (!Array.isArray(exec) || exec.length !== commands) return misplaced(exec);
  readReplies(exec);
  return { done: true, reached: typeof wait === 'number' ? wait : 0 };
}
