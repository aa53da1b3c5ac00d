/**
 * Only this file and open-response.ts use HttpResponse. Read request data before the first await. A response
 * that is never sent or aborted, or is used after its end, ends the process. Cork every write.
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
  /** A list, because merging would double the cost. */
  readonly headers: readonly Headers[];
}

type Answer = Head & { readonly body: string | Buffer };

/** Receives the body, ApiError or ClientDisconnectedError. */
type TakeBody = (body: Buffer | Error) => void;

/** Rejected bodies are read up to this size, so that the client sees the response. */
const drainedBytes = 16 * 1024 * 1024;

/** A piece costs like 1,000 bytes: half a megabyte in single bytes would block others for seconds. */
const mostPieces = (bytes: number): number => 4096 + bytes / 256;

/** A class: an object literal would create its methods for each request. */
export class Exchange extends OpenResponse {
  readonly method: string;
  /** Empty if the route ignores it. */
  readonly query: string;
  /** Percent-encoded. */
  readonly parameters: string[] = [];
  readonly requestId: string;
  readonly framingProblem: string | null;
  span: Span | null = null;
  private readonly headers: readonly string[];
  /**
   * Responses are sent in a later turn: thousands of requests that a client sends together would delay all
   * others.
   */
  private readonly turn = turnNow();
  /** True even if the body was dropped. */
  private received: boolean;
  private awaitsBody = false;
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

  /** Empty after a disconnect. */
  peer(): string {
    return this.done ? '' : Buffer.from(this.res.getRemoteAddressAsText()).toString();
  }

  onBody(take: TakeBody): void {
    if (this.body === null) this.take = take;
    else take(this.body);
  }

  /** Call once. @param onEnd complete or not */
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
   * Reads the request body first: closing needs a header, which uWebSockets.js would write between the
   * pieces.
   * @throws errors of the pieces
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
      if (answer.status !== 204) sent = this.res.tryEnd(answer.body, 0)[1];
      // A response with status 204 must have no length (RFC 9110).
      else sent = this.res.endWithoutBody() !== null;
    });
    if (!sent) this.sendRest(bytesOf(answer.body), over);
    else {
      this.finish();
      over();
    }
  }

  /**
   * Responds before the body is complete and drops the rest. After end(), uWebSockets.js would read without
   * limit, or close so that the client's kernel drops the response. So the response is sent as the last
   * header line, and stays open until the body is read (ADR 7).
   */
  private answerAndClose(answer: Answer): void {
    // The line feed after the header becomes the last two bytes of the body: harmless after text and gzip.
    const length = Buffer.byteLength(answer.body) + 2;
    const lastLine = Buffer.concat([Buffer.from(`${length}\r\n\r\n`), bytesOf(answer.body)]);
    this.closeAfter(answer, 'Content-Length', lastLine);
    this.keepUnread(length);
  }

  /**
   * Also for HEAD: other calls buffer more than the socket accepts.
   * @param lastLine the length; the body may follow
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
    // Closing now would drop buffered data.
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
  if (status !== 200) res.writeStatus(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`);
  for (const some of headers) for (const name in some) res.writeHeader(name, some[name] as string);
}

/** Requests that repeat one of these headers are rejected: a proxy may have used another value. */
const singles = ['content-length', 'host', 'x-api-key', 'authorization', 'idempotency-key'];

/** @returns lower-case names, each followed by its value: faster than a map */
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
