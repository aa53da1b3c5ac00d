/** RESP2. Texts are slices of the received bytes. */
export type Reply = Buffer | number | null | Error | Reply[];

const [plus, minus, colon, dollar, star, carriageReturn, zero] = [0x2b, 0x2d, 0x3a, 0x24, 0x2a, 0x0d, 0x30];
const lineEnd = 2;

/** Same name as in ioredis. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

export function createReplyReader() {
  let bytes: Buffer = Buffer.alloc(0);
  let at = 0;

  function upTo(end: number): Buffer | undefined {
    if (end < at || end + lineEnd > bytes.length) return undefined;
    const found = bytes.subarray(at, end);
    at = end + lineEnd;
    return found;
  }

  const line = (): Buffer | undefined => upTo(bytes.indexOf(carriageReturn, at));

  function number(): number | undefined {
    const negative = bytes[at] === minus;
    let value = 0;
    for (let i = negative ? at + 1 : at; i < bytes.length - 1; i++) {
      const byte = bytes[i] as number;
      if (byte === carriageReturn) {
        at = i + lineEnd;
        return negative ? -value : value;
      }
      value = 10 * value + (byte - zero);
    }
    return undefined;
  }

  function list(length: number): Reply[] | undefined {
    const found: Reply[] = [];
    for (let i = 0; i < length; i++) {
      const reply = read();
      if (reply === undefined) return undefined;
      found.push(reply);
    }
    return found;
  }

  function read(): Reply | undefined {
    if (at >= bytes.length) return undefined;
    const sign = bytes[at++];
    if (sign === plus) return line();
    if (sign === minus) {
      const message = line();
      return message && new ReplyError(message.toString());
    }
    if (sign !== dollar && sign !== star && sign !== colon)
      throw new Error(`Redis sent something that is no reply: byte ${sign}`);
    const found = number();
    if (found === undefined || sign === colon) return found;
    if (found < 0) return null;
    return sign === dollar ? upTo(at + found) : list(found);
  }

  return {
    add: (more: Buffer): void => {
      bytes = at === bytes.length ? more : Buffer.concat([bytes.subarray(at), more]);
      at = 0;
    },
    /** @returns undefined if incomplete @throws Error for invalid bytes */
    next: (): Reply | undefined => {
      const start = at;
      const reply = read();
      if (reply === undefined) at = start;
      return reply;
    },
  };
}

export type Replies = ReturnType<typeof readReplies>;

/** @throws the first error reply */
export function readReplies(replies: readonly Reply[]) {
  for (const reply of replies) if (reply instanceof Error) throw reply;
  let at = 0;
  return {
    skip: (count: number): void => {
      at += count;
    },
    list: (): readonly (Buffer | null)[] => {
      const reply = replies[at++];
      return Array.isArray(reply) ? (reply as (Buffer | null)[]) : misplaced(reply);
    },
  };
}

function misplaced(reply: Reply | undefined): never {
  throw new Error(`Redis sent something else than was asked for: ${typeof reply}`);
}

/**
 * @param replies to MULTI, commands, EXEC, and WAIT if sent
 * @returns `isCommitted`: false if a watched key changed; `replicas`: 0 without a successful WAIT
 * @throws the first error reply
 */
export function outcomeOf(commands: number, replies: readonly Reply[]) {
  const [exec, wait] = replies.slice(commands + 1);
  readReplies(replies.slice(0, commands + 2));
  if (exec === null) return { done: false, reached: 0 };
  if (!Array.isArray(exec) || exec.length !== commands) return misplaced(exec);
  readReplies(exec);
  return { done: true, reached: typeof wait === 'number' ? wait : 0 };
}
