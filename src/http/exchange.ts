/**
 * One request and its one answer over uWebSockets.js: with response-stream.ts the only module that touches HttpResponse.
 *
 * Hazards: request data is gone after the handler's first await, so everything is read at once. A response that is neither
 * answered nor aborted, or touched after its end, kills the process. Every write is corked.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { randomBytes } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ApiError, unavailable } from '../errors.js';
import type { Span } from '../spans.js';
import { type ArrivingBody, createArrivingBody } from './arriving-body.js';
import { nothing, OpenResponse, type UnreadAnswers } from './response-stream.js';
import type { Match } from './route.js';

/** The error of a body whose client disconnected: nobody is there to answer. */
export class ClientGone extends Error {}

export type Headers = Readonly<Record<string, string>>;

interface Head {
  readonly status: number;
  /** One after the other, as they were gathered: to put them together costs as much as to write them. */
  readonly headers: readonly Headers[];
}

type Answer = Head & { readonly body: string | Buffer };

/** Takes the whole body, or why there is none: ApiError PAYLOAD_TOO_LARGE, UNAVAILABLE; ClientGone. */
type TakeBody = (body: Buffer | Error) => void;

/** How much of a body that nobody wants is read and dropped, so that the client gets to see the answer. */
const drainedBytes = 16 * 1024 * 1024;

/** Each piece costs as much as a thousand bytes: half a megabyte sent byte by byte would stop everybody else for seconds. */
const mostPieces = (bytes: number): number => 4096 + bytes / 256;

/** A class: methods of an object literal would be made again with every request. */
export class Exchange extends OpenResponse {
  readonly method: string;
  /** Query as it was sent, without the question mark; empty where the route reads none. */
  readonly query: string;
  /** Those of the path, still percent-encoded. */
  readonly parameters: string[] = [];
  readonly requestId: string;
  /** Why the request's framing is refused, or null. */
  readonly framingProblem: string | null;
  span: Span | null = null;
  private readonly headers: readonly string[];
  /**
   * Turn of the event loop in which it came. Nothing is answered in it: thousands of requests that a client sends at once would
   * all be handled before others', while the next request ends a connection with an unanswered one. And a small body comes
   * with its head: after the turn it is received.
   */
  private readonly turn = turnNow();
  /** Whether the whole body is there, though perhaps not kept. */
  private received: boolean;
  /** Whether an answer in pieces waits for the end of a body that nobody wants. */
  private awaitsBody = false;
  /** Bytes dropped since an early answer; 0 before one. */
  private draining = 0;
  /** Null until it is known. */
  private body: Buffer | Error | null = null;
  private take: TakeBody = nothing;

  constructor(res: HttpResponse, req: HttpRequest, { route, parameters }: Match, unread: UnreadAnswers) {
    super(res, unread);
    const { headers, framingProblem } = readHeaders(req);
    // Each question to uWebSockets.js makes a text.
    this.method = route === null || route.method === 'GET' ? req.getMethod().toUpperCase() : route.method;
    this.query = route?.query ? (req.getQuery() ?? '') : '';
    while (this.parameters.length < parameters)
      this.parameters.push(req.getParameter(this.parameters.length) ?? '');
    this.headers = headers;
    this.framingProblem = framingProblem;
    this.requestId = requestIdOf(this.header('x-request-id'));
    // A refused body is received as well, so that the client sees the answer: nothing of it is kept.
    const sendsBody = this.header('content-length') || this.header('transfer-encoding');
    const limit = route?.body?.limit ?? (sendsBody ? 0 : null);
    this.received = limit === null;
    if (limit !== null) this.receiveBody(limit);
    res.onAborted(() => {
      this.finish();
      this.settleBody(new ClientGone());
    });
  }

  /** First value of a header, by its lower-case name; null if it was not sent. */
  header(name: string): string | null {
    return headerOf(this.headers, name);
  }

  headerNames(): readonly string[] {
    return this.headers.filter((_, i) => i % 2 === 0);
  }

  /** The address of whoever is connected; empty once it is gone. */
  peer(): string {
    return this.done ? '' : Buffer.from(this.res.getRemoteAddressAsText()).toString();
  }

  /** Hands the body over, once, as soon as it is known to fit or not. */
  onBody(take: TakeBody): void {
    if (this.body === null) this.take = take;
    else take(this.body);
  }

  /**
   * Sends the answer, unless the client is gone; call it once.
   * @param over called when the client has taken it, or is gone or given up
   */
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
   * Sends an answer of any length, piece by piece as the client reads. A body that a GET should not have is read before: in the
   * end uWebSockets.js can close only with a header, which it would write among the pieces.
   * @throws what the pieces throw
   */
  async stream(head: Head, pieces: AsyncIterable<string>): Promise<void> {
    if (this.turn === turnNow()) await nextTurn();
    if (!this.received) await this.wholeBody();
    if (this.done) return;
    if (this.method === 'HEAD') return this.closeAfter(head, 'Transfer-Encoding', 'chunked\r\n');
    this.res.cork(() => writeHead(this.res, head));
    await this.sendPieces(pieces);
  }

  /** Resolves as well when the response is done. */
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

  /** Collects the body, never more than the limit. */
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
      // The chunk's memory is taken back when this callback returns.
      else if (isWhole) this.settleBody(Buffer.from(new Uint8Array(chunk)));
      else keep(new Uint8Array(chunk));
    });
  }

  private send(answer: Answer, over: () => void): void {
    let sent = false;
    this.res.cork(() => {
      writeHead(this.res, answer);
      // 0: the body is all that will come.
      if (answer.status !== 204) sent = this.res.tryEnd(answer.body, 0)[1];
      // With a length it would be an answer that RFC 9110 forbids.
      else sent = this.res.endWithoutBody() !== null;
    });
    if (!sent) this.sendRest(bytesOf(answer.body), over);
    else {
      this.finish();
      over();
    }
  }

  /**
   * Answers while the body may still be arriving, then drops what follows and closes. With end() uWebSockets.js would read on
   * for ever, or close at once, so that the client's kernel drops the answer with the reset. So the whole answer goes out as
   * the last header line, and the response stays open until the rest of the body has been read (ADR 7).
   */
  private answerAndClose(answer: Answer): void {
    // The line feed that ends a header line becomes the body's last two bytes: white space after a text, and behind the end
    // of gzip, where readers stop.
    const length = Buffer.byteLength(answer.body) + 2;
    const lastLine = Buffer.concat([Buffer.from(`${length}\r\n\r\n`), bytesOf(answer.body)]);
    this.closeAfter(answer, 'Content-Length', lastLine);
    this.keepUnread(length);
  }

  /**
   * An answer to HEAD closes as well: without a body there is no call that keeps no more than the socket takes.
   * @param lastLine of the header by which GET states the length: it ends the head, and may have the body behind it
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
    // Not at once: the answer may still lie in uWebSockets.js's buffer, which a close drops.
    setImmediate(() => this.cut());
  }
}

let turn = 0;
let isCounted = false;

/** Number of the event loop's turn. */
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

/** @param limit bytes */
export const tooLarge = (limit: number): ApiError =>
  new ApiError('PAYLOAD_TOO_LARGE', `The body is larger than ${limit / 1024} KiB`);

function writeHead(res: HttpResponse, { status, headers }: Head): void {
  // Nearly all answers are 200, which is the default.
  if (status !== 200) res.writeStatus(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`);
  for (const some of headers) for (const name in some) res.writeHeader(name, some[name] as string);
}

/** Headers that decide what a request is: twice means that somebody on the way may have read it differently. */
const singles = ['content-length', 'host', 'x-api-key', 'authorization', 'idempotency-key'];

/** @returns lower-case names, each with its value behind it: for so few a list costs less than a map */
function readHeaders(req: HttpRequest): { headers: string[]; framingProblem: string | null } {
  const headers: string[] = [];
  let framingProblem: string | null = null;
  req.forEach((name, value) => {
    if (singles.includes(name) && headerOf(headers, name) !== null)
      framingProblem = `The header ${name} was sent more than once`;
    if (name === 'transfer-encoding' && value.toLowerCase() !== 'chunked')
      framingProblem = 'Only the transfer encoding chunked is understood';
    // uWebSockets.js takes it for 0: what follows as a body would be the next request.
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

/** The caller's request id where it is plain text, else one of ours. */
function requestIdOf(sent: string | null): string {
  if (sent !== null && idShape.test(sent)) return sent;
  idCounter += 1;
  return `${idPrefix}-${idCounter.toString(36)}`;
}
