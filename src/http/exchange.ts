/**
 * Only this module and response-stream.ts touch HttpResponse. Request data is invalid after the first await: read it immediately.
 * A response that was never answered or aborted, or is used after its end, ends the process. Cork every write.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { randomBytes } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ApiError, unavailable } from '../errors.js';
import type { Span } from '../spans.js';
import { type ArrivingBody, createArrivingBody } from './arriving-body.js';
import { nothing, OpenResponse, type UnreadAnswers } from './response-stream.js';
import { type Match, tooLarge } from './route.js';

export class ClientGone extends Error {}

export type Headers = Readonly<Record<string, string>>;

interface Head {
  readonly status: number;
  /** A list: merging would double the cost of writing. */
  readonly headers: readonly Headers[];
}

type Answer = Head & { readonly body: string | Buffer };

/** Receives the body, or ApiError PAYLOAD_TOO_LARGE, UNAVAILABLE, or ClientGone. */
type TakeBody = (body: Buffer | Error) => void;

/** Bytes of a rejected body that are read and dropped, so that the client sees the response. */
const drainedBytes = 16 * 1024 * 1024;

/** A piece costs like 1,000 bytes: half a megabyte in single bytes would block all others for seconds. */
const mostPieces = (bytes: number): number => 4096 + bytes / 256;

/** A class, because an object literal would create its methods for each request. */
export class Exchange extends OpenResponse {
  readonly method: string;
  /** Without the question mark; empty if the route reads no query. */
  readonly query: string;
  /** Path parameters, percent-encoded. */
  readonly parameters: string[] = [];
  readonly requestId: string;
  readonly framingProblem: string | null;
  span: Span | null = null;
  private readonly headers: readonly string[];
  /**
   * Event loop turn in which the request arrived. The response is sent in a later turn: thousands of requests that a client sends
   * together would delay all others, and the next request ends a connection with an unanswered one. A small body arrives in the
   * same turn as its head.
   */
  private readonly turn = turnNow();
  /** The whole body has arrived, even if it was dropped. */
  private received: boolean;
  private awaitsBody = false;
  /** Since an early response; 0 before. */
  private draining = 0;
  private body: Buffer | Error | null = null;
  private take: TakeBody = nothing;

  constructor(res: HttpResponse, req: HttpRequest, { route, parameters }: Match, unread: UnreadAnswers) {
    super(res, unread);
    const { headers, framingProblem } = readHeaders(req);
    // Each call of uWebSockets.js creates a string.
    this.method = route === null || route.method === 'GET' ? req.getMethod().toUpperCase() : route.method;
    this.query = route?.query ? (req.getQuery() ?? '') : '';
    while (this.parameters.length < parameters)
      this.parameters.push(req.getParameter(this.parameters.length) ?? '');
    this.headers = headers;
    this.framingProblem = framingProblem;
    this.requestId = requestIdOf(this.header('x-request-id'));
    // Receive a rejected body without keeping it, so that the client sees the response.
    const sendsBody = this.header('content-length') || this.header('transfer-encoding');
    const limit = route?.body?.limit ?? (sendsBody ? 0 : null);
    this.received = limit === null;
    if (limit !== null) this.receiveBody(limit);
    res.onAborted(() => {
      this.finish();
      this.settleBody(new ClientGone());
    });
  }

  header(name: string): string | null {
    return headerOf(this.headers, name);
  }

  headerNames(): readonly string[] {
    return this.headers.filter((_, i) => i % 2 === 0);
  }

  /** Empty after the client disconnected. */
  peer(): string {
    return this.done ? '' : Buffer.from(this.res.getRemoteAddressAsText()).toString();
  }

  onBody(take: TakeBody): void {
    if (this.body === null) this.take = take;
    else take(this.body);
  }

  /** Call once. @param over called when the client has received the response, disconnected or was cut */
  answer(answer: Answer, closeConnection: boolean, over: () => void): void {
    if (this.turn === turnNow()) setImmediate(() => this.answer(answer, closeConnection, over));
    else if (this.done) over();
    else if (this.method !== 'HEAD' && !closeConnection && this.received) this.send(answer, over);
    else {
      if (this.method === 'HEAD')
        this.closeAfter(answer, 'Content-Length', `${Buffer.byteLength(answer.body)}\r\n`);
      else this.answerAndClose(answer);
      over();
    }
  }

  /**
   * Reads the body of the request first: uWebSockets.js can close a connection only with a header, which it would write between
   * the pieces. @throws what the pieces throw
   */
  async stream(head: Head, pieces: AsyncIterable<string>): Promise<void> {
    if (this.turn === turnNow()) await nextTurn();
    if (!this.received) await this.wholeBody();
    if (this.done) return;
    if (this.method === 'HEAD') return this.closeAfter(head, 'Transfer-Encoding', 'chunked\r\n');
    this.res.cork(() => writeHead(this.res, head));
    await this.sendPieces(pieces);
  }

  private wholeBody(): Promise<void> {
    this.awaitsBody = true;
    return new Promise((resolve) => {
      this.wake = resolve;
      if (this.done) resolve();
    });
  }

  private settleBody(body: Buffer | Error): void {
    if (this.body !== null) return;
    this.body = body;
    this.take(body);
  }

  private receiveBody(limit: number): void {
    let arriving: ArrivingBody | null = null;
    let size = 0;
    let pieces = 0;
    const refuse = (error: ApiError): void => {
      this.forget();
      this.settleBody(error);
    };
    const keep = (piece: Uint8Array): void => {
      arriving ??= createArrivingBody(limit, () =>
        refuse(unavailable('Too many large requests at once; try again later')),
      );
      this.forget = arriving.forget;
      arriving.add(piece);
      if (this.received && this.body === null) this.settleBody(arriving.take());
    };
    if (Number(this.header('content-length')) > limit) refuse(tooLarge(limit));
    this.res.onData((chunk, isLast) => {
      pieces += 1;
      // Closing calls onAborted.
      if (pieces > mostPieces(size + this.draining)) return this.cut();
      if (this.draining > 0) return this.drain(chunk.byteLength, isLast);
      const isWhole = isLast && size === 0;
      size += chunk.byteLength;
      if (isLast) {
        this.received = true;
        this.wake();
      }
      if (this.awaitsBody && size > drainedBytes) return this.cut();
      if (this.body !== null) return;
      if (size > limit) refuse(tooLarge(limit));
      // The chunk is invalid after this callback.
      else if (isWhole) this.settleBody(Buffer.from(new Uint8Array(chunk)));
      else keep(new Uint8Array(chunk));
    });
  }

  private send(answer: Answer, over: () => void): void {
    let sent = false;
    this.res.cork(() => {
      writeHead(this.res, answer);
      // 0: the body is complete.
      if (answer.status !== 204) sent = this.res.tryEnd(answer.body, 0)[1];
      // RFC 9110 forbids a length here.
      else sent = this.res.endWithoutBody() !== null;
    });
    if (!sent) this.sendRest(bytesOf(answer.body), over);
    else {
      this.finish();
      over();
    }
  }

  /**
   * Responds before the body is complete, drops the rest and closes. After end(), uWebSockets.js would read without limit, or
   * close immediately, so that the client's kernel drops the response. Therefore the whole response is sent as the last header
   * line, and stays open until the rest of the body has been read (ADR 7).
   */
  private answerAndClose(answer: Answer): void {
    // The line feed after a header line becomes the last two bytes of the body: white space after a text, ignored after gzip.
    const length = Buffer.byteLength(answer.body) + 2;
    const lastLine = Buffer.concat([Buffer.from(`${length}\r\n\r\n`), bytesOf(answer.body)]);
    this.closeAfter(answer, 'Content-Length', lastLine);
    this.keepUnread(length);
  }

  /**
   * Also used for HEAD: other calls without a body buffer more than the socket accepts.
   * @param lastLine value of the header with the length; it ends the head, and the body may follow
   */
  private closeAfter({ status, headers }: Head, lastName: string, lastLine: string | Buffer): void {
    this.draining = 1;
    this.forget();
    const others = headers.filter((some) => !some.Connection);
    this.res.cork(() => {
      writeHead(this.res, { status, headers: [...others, { Connection: 'close' }] });
      this.res.writeHeader(lastName, lastLine);
    });
    if (this.received) this.drain(0, true);
  }

  private drain(bytes: number, isLast: boolean): void {
    this.draining += bytes;
    if (!isLast && this.draining <= drainedBytes) return;
    // Later: closing drops what uWebSockets.js has buffered.
    setImmediate(() => this.cut());
  }
}

let turn = 0;
let isCounted = false;

function turnNow(): number {
  if (!isCounted) {
    isCounted = true;
    setImmediate(() => {
      turn += 1;
      isCounted = false;
    });
  }
  return turn;
}

const bytesOf = (body: string | Buffer): Buffer => (typeof body === 'string' ? Buffer.from(body) : body);

function writeHead(res: HttpResponse, { status, headers }: Head): void {
  // 200 is the default.
  if (status !== 200) res.writeStatus(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`);
  for (const some of headers) for (const name in some) res.writeHeader(name, some[name] as string);
}

/** Repeated ones are rejected: a proxy may have read the other value. */
const singles = ['content-length', 'host', 'x-api-key', 'authorization', 'idempotency-key'];

/** @returns names in lower case, each followed by its value: a list is faster than a map for a few headers */
function readHeaders(req: HttpRequest): { headers: string[]; framingProblem: string | null } {
  const headers: string[] = [];
  let framingProblem: string | null = null;
  req.forEach((name, value) => {
    if (singles.includes(name) && headerOf(headers, name) !== null)
      framingProblem = `The header ${name} was sent more than once`;
    if (name === 'transfer-encoding' && value.toLowerCase() !== 'chunked')
      framingProblem = 'Only the transfer encoding chunked is understood';
    // uWebSockets.js reads 0: the body would be the next request.
    if (name === 'content-length' && value === '') framingProblem = 'The header content-length is empty';
    headers.push(name, value);
  });
  return { headers, framingProblem };
}

function headerOf(headers: readonly string[], name: string): string | null {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1] as string;
  return null;
}

const idShape = /^[A-Za-z0-9._:-]{1,128}$/;
const idPrefix = randomBytes(6).toString('hex');
let idCounter = 0;

function requestIdOf(sent: string | null): string {
  if (sent !== null && idShape.test(sent)) return sent;
  idCounter += 1;
  return `${idPrefix}-${idCounter.toString(36)}`;
}
