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
import { type BodyBuffer, createBodyBuffer } from './body-buffer.js';
import { noop, OpenResponse, type UnreadResponses } from './open-response.js';
import { payloadTooLarge, type RouteMatch } from './route.js';

export class ClientDisconnectedError extends Error {}

export type Headers = Readonly<Record<string, string>>;

interface ResponseHead {
  readonly status: number;
  /** A list, because merging would double the cost. */
  readonly headers: readonly Headers[];
}

type FullResponse = ResponseHead & { readonly body: string | Buffer };

/** Receives the body, ApiError or ClientDisconnectedError. */
type BodyCallback = (body: Buffer | Error) => void;

/** Rejected bodies are read up to this size, so that the client sees the response. */
const maxDrainedBytes = 16 * 1024 * 1024;

/** A piece costs like 1,000 bytes: half a megabyte in single bytes would block others for seconds. */
const maxPieces = (bytes: number): number => 4096 + bytes / 256;

/** A class: an object literal would create its methods for each request. */
export class Exchange extends OpenResponse {
  readonly method: string;
  /** Of an unknown path, without the query; otherwise empty. */
  readonly unknownPath: string;
  /** Empty if the route ignores it. */
  readonly query: string;
  /** Percent-encoded. */
  readonly parameters: string[] = [];
  readonly requestId: string;
  readonly framingProblem: string | null;
  span: Span | null = null;
  /** Empty without a valid key. */
  keyHash = '';
  private readonly headers: readonly string[];
  /**
   * Responses are sent in a later turn: thousands of requests that a client sends together would delay all
   * others. Meanwhile the next request on the connection makes uWebSockets.js close it. A small body arrives in
   * the turn of its head.
   */
  private readonly arrivalTurn = currentTurn();
  /** True even if the body was dropped. */
  hasWholeBody: boolean;
  private awaitsBody = false;
  /** Bytes of the request body since an early response, plus 1; 0: no early response. */
  private drainedBytes = 0;
  private body: Buffer | Error | null = null;
  private bodyCallback: BodyCallback = noop;

  constructor(
    res: HttpResponse,
    req: HttpRequest,
    { route, allow, parameters }: RouteMatch,
    unread: UnreadResponses,
  ) {
    super(res, unread);
    const { headers, framingProblem } = readHeaders(req);
    // Each call of uWebSockets.js creates a string.
    this.method = route === null || route.method === 'GET' ? req.getMethod().toUpperCase() : route.method;
    this.unknownPath = allow === null ? req.getUrl() : '';
    this.query = route?.query ? (req.getQuery() ?? '') : '';
    while (this.parameters.length < parameters)
      this.parameters.push(req.getParameter(this.parameters.length) ?? '');
    this.headers = headers;
    this.framingProblem = framingProblem;
    this.requestId = chooseRequestId(this.header('x-request-id'));
    const sendsBody = this.header('content-length') || this.header('transfer-encoding');
    const limit = route?.body?.limit ?? (sendsBody ? 0 : null);
    this.hasWholeBody = limit === null;
    if (limit !== null) this.receiveBody(limit);
    res.onAborted(() => {
      this.finish();
      this.deliverBody(new ClientDisconnectedError());
    });
  }

  header(name: string): string | null {
    return findHeader(this.headers, name);
  }

  headerNames(): readonly string[] {
    return this.headers.filter((_, i) => i % 2 === 0);
  }

  /** Empty after a disconnect. */
  peerAddress(): string {
    return this.isDone ? '' : Buffer.from(this.res.getRemoteAddressAsText()).toString();
  }

  onBody(take: BodyCallback): void {
    if (this.body === null) this.bodyCallback = take;
    else take(this.body);
  }

  /** Call once. @param onEnd called when the response has ended, complete or not */
  sendResponse(answer: FullResponse, closeConnection: boolean, onEnd: () => void): void {
    if (this.arrivalTurn === currentTurn())
      setImmediate(() => this.sendResponse(answer, closeConnection, onEnd));
    else if (this.isDone) onEnd();
    else if (this.method !== 'HEAD' && !closeConnection && this.hasWholeBody) this.send(answer, onEnd);
    else {
      if (this.method === 'HEAD')
        this.sendHeadAndDrain(answer, 'Content-Length', `${Buffer.byteLength(answer.body)}\r\n`);
      else this.sendAndClose(answer);
      onEnd();
    }
  }

  /**
   * Reads the request body first: closing needs a header, which uWebSockets.js would write between the
   * pieces.
   * @throws errors of the pieces
   */
  async streamResponse(head: ResponseHead, pieces: AsyncIterable<string>): Promise<void> {
    if (this.arrivalTurn === currentTurn()) await nextTurn();
    if (!this.hasWholeBody) await this.waitForBody();
    if (this.isDone) return;
    if (this.method === 'HEAD') return this.sendHeadAndDrain(head, 'Transfer-Encoding', 'chunked\r\n');
    this.res.cork(() => writeHead(this.res, head));
    await this.sendPieces(pieces);
  }

  private waitForBody(): Promise<void> {
    this.awaitsBody = true;
    return new Promise((resolve) => {
      this.onProgress = resolve;
      if (this.isDone) resolve();
    });
  }

  private deliverBody(body: Buffer | Error): void {
    if (this.body !== null) return;
    this.body = body;
    this.bodyCallback(body);
  }

  private receiveBody(limit: number): void {
    let arriving: BodyBuffer | null = null;
    let size = 0;
    let pieces = 0;
    const reject = (error: ApiError): void => {
      this.releaseMemory();
      this.deliverBody(error);
    };
    const keep = (piece: Uint8Array): void => {
      arriving ??= createBodyBuffer(limit, () =>
        reject(unavailable('Too many large requests are in flight; retry later.')),
      );
      this.releaseMemory = arriving.release;
      arriving.add(piece);
      if (this.hasWholeBody && this.body === null) this.deliverBody(arriving.complete());
    };
    if (Number(this.header('content-length')) > limit) reject(payloadTooLarge(limit));
    this.res.onData((chunk, isLast) => {
      pieces += 1;
      if (pieces > maxPieces(size + this.drainedBytes)) return this.cut();
      if (this.drainedBytes > 0) return this.drain(chunk.byteLength, isLast);
      const isWhole = isLast && size === 0;
      size += chunk.byteLength;
      if (isLast) {
        this.hasWholeBody = true;
        this.onProgress();
      }
      if (this.awaitsBody && size > maxDrainedBytes) return this.cut();
      if (this.body !== null) return;
      if (size > limit) reject(payloadTooLarge(limit));
      // The chunk is invalid after this callback.
      else if (isWhole) this.deliverBody(Buffer.from(new Uint8Array(chunk)));
      else keep(new Uint8Array(chunk));
    });
  }

  private send(answer: FullResponse, onEnd: () => void): void {
    let sent = false;
    this.res.cork(() => {
      writeHead(this.res, answer);
      if (answer.status !== 204) sent = this.res.tryEnd(answer.body, 0)[1];
      // A response with status 204 must have no length (RFC 9110).
      else sent = this.res.endWithoutBody() !== null;
    });
    if (!sent) this.sendRemainder(toBytes(answer.body), onEnd);
    else {
      this.finish();
      onEnd();
    }
  }

  /**
   * Responds before the body is complete and drops the rest. After end(), uWebSockets.js would read without
   * limit, or close so that the client's kernel drops the response. So the response is sent as the last
   * header line, and stays open until the body is read (ADR 7).
   */
  private sendAndClose(answer: FullResponse): void {
    // The line feed after the header becomes the last two bytes of the body: harmless after text and gzip.
    const length = Buffer.byteLength(answer.body) + 2;
    const lastLine = Buffer.concat([Buffer.from(`${length}\r\n\r\n`), toBytes(answer.body)]);
    this.sendHeadAndDrain(answer, 'Content-Length', lastLine);
    this.registerUnread(length);
  }

  /**
   * Also for HEAD: other calls buffer more than the socket accepts.
   * @param lastLine the length; the body may follow
   */
  private sendHeadAndDrain(
    { status, headers }: ResponseHead,
    lastName: string,
    lastLine: string | Buffer,
  ): void {
    this.drainedBytes = 1;
    this.releaseMemory();
    const others = headers.filter((some) => !some.Connection);
    this.res.cork(() => {
      writeHead(this.res, { status, headers: [...others, { Connection: 'close' }] });
      this.res.writeHeader(lastName, lastLine);
    });
    if (this.hasWholeBody) this.drain(0, true);
  }

  private drain(bytes: number, isLast: boolean): void {
    this.drainedBytes += bytes;
    if (!isLast && this.drainedBytes <= maxDrainedBytes) return;
    // Closing now would drop buffered data.
    setImmediate(() => this.cut());
  }
}

let turn = 0;
let isCounted = false;

function currentTurn(): number {
  if (!isCounted) {
    isCounted = true;
    setImmediate(() => {
      turn += 1;
      isCounted = false;
    });
  }
  return turn;
}

const toBytes = (body: string | Buffer): Buffer => (typeof body === 'string' ? Buffer.from(body) : body);

function writeHead(res: HttpResponse, { status, headers }: ResponseHead): void {
  if (status !== 200) res.writeStatus(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`);
  for (const some of headers) for (const name in some) res.writeHeader(name, some[name] as string);
}

/** Requests that repeat one of these headers are rejected: a proxy may have used another value. */
const singleHeaders = ['content-length', 'host', 'x-api-key', 'authorization', 'idempotency-key'];

/** @returns lower-case names, each followed by its value: faster than a map */
function readHeaders(req: HttpRequest): { headers: string[]; framingProblem: string | null } {
  const headers: string[] = [];
  let framingProblem: string | null = null;
  req.forEach((name, value) => {
    if (singleHeaders.includes(name) && findHeader(headers, name) !== null)
      framingProblem = `The header ${name} was sent more than once; send it once.`;
    if (name === 'transfer-encoding' && value.toLowerCase() !== 'chunked')
      framingProblem = 'This Transfer-Encoding is not supported; use chunked.';
    // uWebSockets.js reads 0: the body would be the next request.
    if (name === 'content-length' && value === '')
      framingProblem = 'The header content-length is empty; send the number of bytes.';
    headers.push(name, value);
  });
  return { headers, framingProblem };
}

function findHeader(headers: readonly string[], name: string): string | null {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1] as string;
  return null;
}

const idShape = /^[A-Za-z0-9._:-]{1,128}$/;
const idPrefix = randomBytes(6).toString('hex');
let idCounter = 0;

function chooseRequestId(sent: string | null): string {
  if (sent !== null && idShape.test(sent)) return sent;
  idCounter += 1;
  return `${idPrefix}-${idCounter.toString(36)}`;
}
