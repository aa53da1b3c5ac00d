/** Reads what Redis replies (RESP2) as it comes, cut anywhere. */

/** Texts are bytes of what came: they are good as long as anybody holds them. */
export type Reply = Buffer | number | null | Error | Reply[];

export interface ReplyReader {
  add(bytes: Buffer): void;
  /** The next reply; undefined while not all of it is there. @throws Error for what is no reply */
  next(): Reply | undefined;
}

const [plus, minus, colon, dollar, star, carriageReturn, zero] = [0x2b, 0x2d, 0x3a, 0x24, 0x2a, 0x0d, 0x30];
const lineEnd = 2;
const none = Buffer.alloc(0);

/** As ioredis tells them. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

export function createReplyReader(): ReplyReader {
  let bytes: Buffer = none;
  let at = 0;

  /** The bytes up to the line's end; undefined while it is not there. */
  function line(): Buffer | undefined {
    const end = bytes.indexOf(carriageReturn, at);
    if (end < 0 || end + lineEnd > bytes.length) return undefined;
    const found = bytes.subarray(at, end);
    at = end + lineEnd;
    return found;
  }

  /** Digit by digit: each reply has one at least. */
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

  function text(): Buffer | null | undefined {
    const length = number();
    if (length === undefined) return undefined;
    if (length < 0) return null;
    const end = at + length;
    if (end + lineEnd > bytes.length) return undefined;
    const found = bytes.subarray(at, end);
    at = end + lineEnd;
    return found;
  }

  function list(): Reply[] | null | undefined {
    const length = number();
    if (length === undefined) return undefined;
    if (length < 0) return null;
    const found: Reply[] = [];
    for (let i = 0; i < length; i++) {
      const reply = read();
      if (reply === undefined) return undefined;
      found.push(reply);
    }
    return found;
  }

  function error(): Error | undefined {
    const message = line();
    return message && new ReplyError(message.toString());
  }

  function read(): Reply | undefined {
    if (at >= bytes.length) return undefined;
    const sign = bytes[at++];
    switch (sign) {
      case dollar:
        return text();
      case star:
        return list();
      case colon:
        return number();
      case plus:
        return line();
      case minus:
        return error();
      default:
        throw new Error(`Redis sent something that is no reply: byte ${sign}`);
    }
  }

  return {
    add: (more) => {
      bytes = at === bytes.length ? more : Buffer.concat([bytes.subarray(at), more]);
      at = 0;
    },
    next: () => {
      const start = at;
      const reply = read();
      if (reply === undefined) at = start;
      return reply;
    },
  };
}
