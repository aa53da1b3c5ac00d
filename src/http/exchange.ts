/**
 * One request and its one answer over uWebSockets.js: with response-stream.ts the only module that touches HttpResponse.
 *
 * Hazards that are dealt with here and nowhere else: request data is gone after the handler's first await, so
 * everything is read at once; a response that is neither answered nor aborted, or touched after its end, kills the
 * process below JavaScript; every write is corked.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { STATUS_CODES } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ApiError, unavailable } from '../errors.js';
import { createArrivingBody } from './arriving-body.js';
import { readHeaders } from './request-headers.js';
import { requestIdOf } from './request-id.js';
import { cut, finish, keepUnread, type ResponseState, sendPieces, sendRest } from './response-stream.js';
import type { UnreadAnswers } from './unread-answers.js';

/** Thrown by `body()` when the client went away: nobody is there to answer. */
export class ClientGone extends Error {}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Exchange {
  readonly method: string;
  /** Path as it was sent, still percent-encoded. */
  readonly path: string;
  /** Query as it was sent, without the question mark. */
  readonly query: string;
  readonly requestId: string;
  /** First value of a header, by its lower-case name; null if it was not sent. */
  header(name: string): string | null;
  /** Lower-case names of the headers that were sent. */
  headerNames(): readonly string[];
  /** Whether nobody is there any more to answer, or all is answered. */
  gone(): boolean;
  /** The address of whoever is connected; empty once it is gone. */
  peer(): string;
  /** Why the request's framing is refused, or null. */
  readonly framingProblem: string | null;
  /** The whole body. @throws ApiError PAYLOAD_TOO_LARGE, UNAVAILABLE; ClientGone */
  body(): Promise<Buffer>;
  /**
   * Sends the answer, unless the client is gone; call it once. A promise where it is not sent at once: resolves when the
   * client has taken it, or is given up.
   */
  answer(answer: Answer, closeConnection: boolean): Promise<void> | undefined;
  /** Sends an answer of any length, piece by piece as the client reads. @throws what the pieces throw */
  stream(head: Omit<Answer, 'body'>, pieces: AsyncIterable<string>): Promise<void>;
}

/** How much of a refused body is read and dropped, so that the client gets to see the answer. */
const drainedBytes = 16 * 1024 * 1024;

/**
 * Takes a request over from uWebSockets.js.
 * @param bodyLimit most bytes of body that are kept; null where the route has no body
 */
export function openExchange(
  res: HttpResponse,
  req: HttpRequest,
  bodyLimit: number | null,
  unread: UnreadAnswers,
): Exchange {
  const method = req.getMethod().toUpperCase();
  const { headers, framingProblem } = readHeaders(req);
  const state: State = {
    unread,
    isHead: method === 'HEAD',
    done: false,
    received: bodyLimit === null,
    draining: 0,
    turn: turnNow(),
    forget: () => undefined,
    wake: () => undefined,
  };
  const expected = Number(headers.get('content-length') ?? 0);
  const body = bodyLimit === null ? emptyBody : receiveBody(res, state, bodyLimit, expected);
  if (bodyLimit === null) res.onAborted(() => finish(state));
  return {
    method,
    path: req.getUrl(),
    query: req.getQuery() ?? '',
    requestId: requestIdOf(headers.get('x-request-id')),
    header: (name) => headers.get(name) ?? null,
    headerNames: () => [...headers.keys()],
    gone: () => state.done,
    peer: () => (state.done ? '' : Buffer.from(res.getRemoteAddressAsText()).toString()),
    framingProblem,
    body: () => body,
    answer: (answer, closeConnection) => {
      const send = () => reply(res, state, answer, closeConnection);
      return state.turn === turnNow() ? nextTurn().then(send) : send();
    },
    stream: async (head, pieces) => {
      if (state.done) return;
      if (state.isHead) return headAndClose(res, state, head, 'Transfer-Encoding', 'chunked');
      res.cork(() => writeHead(res, head));
      // Who still sends a body to a GET would have it taken for the next request.
      await sendPieces(res, state, pieces, () => !state.received);
    },
  };
}

function reply(
  res: HttpResponse,
  state: State,
  answer: Answer,
  closeConnection: boolean,
): Promise<void> | undefined {
  if (state.done) return undefined;
  if (state.isHead) headAndClose(res, state, answer, 'Content-Length', `${Buffer.byteLength(answer.body)}`);
  else if (closeConnection || !state.received) answerAndClose(res, state, answer);
  else return send(res, state, answer);
  return undefined;
}

interface State extends ResponseState {
  readonly isHead: boolean;
  /** The whole body is there. */
  received: boolean;
  /** Bytes dropped since an early answer; 0 before one. */
  draining: number;
  /**
   * Turn of the event loop in which it came. Nothing is answered in that turn: what a client sends at once is read at
   * once, and of thousands of requests in it each that is answered lets the next one be handled, while all others wait. An
   * unanswered one ends the connection at the next. And a small body comes with its head: after the turn it is received.
   */
  readonly turn: number;
}

let turn = 0;
let isCounted = false;

/** The same for all requests of one turn of the event loop. */
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

const emptyBody = Promise.resolve(Buffer.alloc(0));

/**
 * A client may send its bytes one by one, but each costs as much as a thousand: half a megabyte of them, read at once,
 * would stop everybody else for seconds.
 */
const mostPieces = (bytes: number): number => 4096 + bytes / 256;

/** Collects the body, never more than the limit; the promise settles once it is known to fit or not. */
function receiveBody(res: HttpResponse, state: State, limit: number, expected: number): Promise<Buffer> {
  const body = new Promise<Buffer>((resolve, reject) => {
    const arriving = createArrivingBody(limit, () => refuse(tooMany()));
    let size = 0;
    let pieces = 0;
    let refused = false;
    state.forget = arriving.forget;
    const refuse = (error: ApiError): void => {
      refused = true;
      arriving.forget();
      reject(error);
    };
    if (expected > limit) refuse(tooLarge(limit));
    res.onAborted(() => {
      finish(state);
      reject(new ClientGone());
    });
    res.onData((chunk, isLast) => {
      pieces += 1;
      // Closing tells onAborted.
      if (pieces > mostPieces(size + state.draining)) return cut(res, state);
      if (state.draining > 0) return drain(res, state, chunk.byteLength, isLast);
      const isWhole = isLast && size === 0;
      size += chunk.byteLength;
      if (isLast) state.received = true;
      if (refused) return;
      if (size > limit) return refuse(tooLarge(limit));
      // The chunk's memory is taken back when this callback returns.
      if (isWhole) return resolve(Buffer.from(new Uint8Array(chunk)));
      arriving.add(new Uint8Array(chunk));
      if (isLast && !refused) resolve(arriving.take());
    });
  });
  // The answer may be decided before anybody waits for the body.
  body.catch(() => undefined);
  return body;
}

const tooLarge = (limit: number): ApiError =>
  new ApiError('PAYLOAD_TOO_LARGE', `The body is larger than ${limit / 1024} KiB`);

const tooMany = (): ApiError => unavailable('Too many large requests at once; try again later');

function send(res: HttpResponse, state: State, answer: Answer): Promise<void> | undefined {
  let sent = false;
  res.cork(() => {
    writeHead(res, answer);
    // 0: the body is all that will come.
    sent = res.tryEnd(answer.body, 0)[1];
  });
  if (!sent) return sendRest(res, state, Buffer.from(answer.body));
  finish(state);
  return undefined;
}

function writeHead(res: HttpResponse, { status, headers }: Omit<Answer, 'body'>): void {
  // Nearly all answers are 200, which stands there without a word.
  if (status !== 200) res.writeStatus(statusLine(status));
  for (const name in headers) res.writeHeader(name, headers[name] as string);
}

/**
 * Answers at once and completely, also while the body is still arriving, then drops what follows and closes.
 *
 * uWebSockets.js has no call for this: its end() either goes on reading for ever or closes under the client's
 * hands, whose kernel then throws the answer away with the reset. So the whole answer goes out as the last header
 * line, and the response stays open for us until the rest of the body has been read. Until then the connection takes no
 * further request, of which each would leave another answer for a client that reads none.
 */
function answerAndClose(res: HttpResponse, state: State, answer: Answer): void {
  // The line feed that ends a header line becomes the body's last two bytes: white space after the JSON.
  const length = Buffer.byteLength(answer.body) + 2;
  closeAfter(res, state, answer, 'Content-Length', `${length}\r\n\r\n${answer.body}`);
  keepUnread(res, state, length);
}

/**
 * Closes as well, for of an answer without a body uWebSockets.js cannot be told to keep no more than the socket takes.
 * Name and value are those of the header by which GET tells the length of the body.
 */
const headAndClose = (
  res: HttpResponse,
  state: State,
  head: Omit<Answer, 'body'>,
  name: string,
  value: string,
): void => closeAfter(res, state, head, name, `${value}\r\n`);

/** @param lastLine ends the head, and may have the body behind it */
function closeAfter(
  res: HttpResponse,
  state: State,
  { status, headers }: Omit<Answer, 'body'>,
  lastName: string,
  lastLine: string,
): void {
  state.draining = 1;
  state.forget();
  res.cork(() => {
    writeHead(res, { status, headers: { ...headers, Connection: 'close' } });
    res.writeHeader(lastName, lastLine);
  });
  if (state.received) drain(res, state, 0, true);
}

function drain(res: HttpResponse, state: State, bytes: number, isLast: boolean): void {
  state.draining += bytes;
  if (!isLast && state.draining <= drainedBytes) return;
  // Not at once: the answer may still lie in uWebSockets.js's buffer, which a close throws away.
  setImmediate(cut, res, state);
}

const statusLine = (status: number): string => `${status} ${STATUS_CODES[status] ?? 'Unknown'}`;
