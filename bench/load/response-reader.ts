/** Parses HTTP/1.1 responses, from pieces of any size. */

export interface HttpResponse {
  readonly status: number;
  /** Latin-1, the beginning; '' for status 200 with a length. */
  readonly body: string;
  /** Head and body. */
  readonly bytes: number;
  /** The server closes the connection after this response. */
  readonly isLast: boolean;
}

const headEnd = '\r\n\r\n';
const maxHead = 8192;
/** Only the first error code is needed. */
const maxBody = 65_536;

/**
 * The result reads `length` bytes of a buffer, which the caller can reuse.
 * @throws Error if the bytes are not a complete response to one request
 */
export function createResponseReader(
  onResponse: (response: HttpResponse) => void,
): (buffer: Buffer, length: number) => void {
  let partialHead = '';
  let current: (BodyReader & { readonly status: number; readonly isLast: boolean; bytes: number }) | null =
    null;

  const readBody = (buffer: Buffer, from: number, length: number): void => {
    if (current === null) return;
    const text = current.needsText ? buffer.toString('latin1', from, length) : '';
    current.bytes += length - from;
    if (!current.read(text, length - from)) return;
    const { status, isLast, bytes, text: body } = current;
    current = null;
    onResponse({ status, body: body(), bytes, isLast });
  };

  return (buffer, length) => {
    if (current !== null) {
      readBody(buffer, 0, length);
      return;
    }
    const text = partialHead + buffer.toString('latin1', 0, Math.min(length, maxHead));
    const end = text.indexOf(headEnd);
    if (end < 0) {
      if (text.length >= maxHead) throw new Error('not an HTTP response');
      partialHead = text;
      return;
    }
    const head = text.slice(0, end + 2);
    const bodyAt = end + headEnd.length - partialHead.length;
    partialHead = '';
    const status = Number(head.slice(9, 12));
    const isLast = /\r\n[Cc]onnection: *close/.test(head);
    current = { ...createBodyReader(head, status), status, isLast, bytes: end + headEnd.length };
    readBody(buffer, bodyAt, length);
  };
}

interface BodyReader {
  readonly needsText: boolean;
  /** @returns whether the body is complete */
  read(piece: string, length: number): boolean;
  text(): string;
}

function createBodyReader(head: string, status: number): BodyReader {
  const length = /\r\n[Cc]ontent-[Ll]ength: *(\d+)/.exec(head)?.[1];
  if (length !== undefined || status === 204) return createLengthReader(Number(length ?? 0), status !== 200);
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) return createChunkedReader();
  throw new Error('response without a length');
}

function createLengthReader(total: number, needsText: boolean): BodyReader {
  let missing = total;
  let body = '';
  return {
    needsText,
    read: (piece, length) => {
      if (body.length < maxBody) body += piece;
      missing -= length;
      if (missing < 0) throw new Error('received more bytes than one response');
      return missing === 0;
    },
    text: () => body,
  };
}

function createChunkedReader(): BodyReader {
  let [raw, body] = ['', ''];
  return {
    needsText: true,
    read: (piece) => {
      raw += piece;
      for (let end = raw.indexOf('\r\n'); end >= 0; end = raw.indexOf('\r\n')) {
        const size = Number.parseInt(raw.slice(0, end), 16);
        // The last chunk has no bytes; trailers may follow.
        if (size === 0) return raw.includes(headEnd, end);
        if (Number.isNaN(size)) throw new Error('invalid chunk');
        if (raw.length < end + 2 + size + 2) return false;
        if (body.length < maxBody) body += raw.slice(end + 2, end + 2 + size);
        raw = raw.slice(end + 2 + size + 2);
      }
      return false;
    },
    text: () => body,
  };
}
