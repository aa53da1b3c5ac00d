/** RESP2. Texts are slices of the received bytes. */
export type Reply = Buffer | number | null | Error | Reply[];

const [plus, minus, colon, dollar, star, carriageReturn, zero] = [0x2b, 0x2d, 0x3a, 0x24, 0x2a, 0x0d, 0x30];
const lineEndBytes = 2;

/** Same name as in ioredis. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

export function createReplyParser() {
  let bytes: Buffer = Buffer.alloc(0);
  let at = 0;

  function readUntil(end: number): Buffer | undefined {
    if (end < at || end + lineEndBytes > bytes.length) return undefined;
    const found = bytes.subarray(at, end);
    at = end + lineEndBytes;
    return found;
  }

  const readLine = (): Buffer | undefined => readUntil(bytes.indexOf(carriageReturn, at));

  function readNumber(): number | undefined {
    const negative = bytes[at] === minus;
    let value = 0;
    for (let i = negative ? at + 1 : at; i < bytes.length - 1; i++) {
      const byte = bytes[i] as number;
      if (byte === carriageReturn) {
        at = i + lineEndBytes;
        return negative ? -value : value;
      }
      value = 10 * value + (byte - zero);
    }
    return undefined;
  }

  function readList(length: number): Reply[] | undefined {
    const found: Reply[] = [];
    for (let i = 0; i < length; i++) {
      const reply = readReply();
      if (reply === undefined) return undefined;
      found.push(reply);
    }
    return found;
  }

  function readReply(): Reply | undefined {
    if (at >= bytes.length) return undefined;
    const sign = bytes[at++];
    if (sign === plus) return readLine();
    if (sign === minus) {
      const message = readLine();
      return message && new ReplyError(message.toString());
    }
    if (sign !== dollar && sign !== star && sign !== colon)
      throw new Error(`invalid reply from Redis: byte ${sign}`);
    const found = readNumber();
    if (found === undefined || sign === colon) return found;
    if (found < 0) return null;
    return sign === dollar ? readUntil(at + found) : readList(found);
  }

  return {
    add: (more: Buffer): void => {
      bytes = at === bytes.length ? more : Buffer.concat([bytes.subarray(at), more]);
      at = 0;
    },
    /** @returns undefined if incomplete @throws Error for invalid bytes */
    next: (): Reply | undefined => {
      const start = at;
      const reply = readReply();
      if (reply === undefined) at = start;
      return reply;
    },
  };
}

export type ReplySequence = ReturnType<typeof createReplySequence>;

/** @throws the first error reply */
export function createReplySequence(replies: readonly Reply[]) {
  for (const reply of replies) if (reply instanceof Error) throw reply;
  let at = 0;
  return {
    skip: (count: number): void => {
      at += count;
    },
    list: (): readonly (Buffer | null)[] => {
      const reply = replies[at++];
      return Array.isArray(reply) ? (reply as (Buffer | null)[]) : throwUnexpected(reply);
    },
  };
}

function throwUnexpected(reply: Reply | undefined): never {
  throw new Error(`unexpected type of a Redis reply: ${typeof reply}`);
}

/**
 * @param replies to MULTI, commands, EXEC, and WAIT if sent
 * @returns `isCommitted`: false if a watched key changed; `replicas`: 0 without a successful WAIT
 * @throws the first error reply
 */
export function parseTransaction(commands: number, replies: readonly Reply[]) {
  const [exec, wait] = replies.slice(commands + 1);
  createReplySequence(replies.slice(0, commands + 2));
  if (exec === null) return { isCommitted: false, replicas: 0 };
  if (!Array.isArray(exec) || exec.length !== commands) return throwUnexpected(exec);
  createReplySequence(exec);
  return { isCommitted: true, replicas: typeof wait === 'number' ? wait : 0 };
}
