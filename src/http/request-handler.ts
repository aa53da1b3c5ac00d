import { ApiError } from '../errors.js';
import type { KeyTraffic } from '../services/operations/key-traffic.js';
import type { StartSpan } from '../spans.js';
import { compressReply, isCompressible } from './compression.js';
import { ClientDisconnectedError, type Exchange, type Headers } from './exchange.js';
import { type AdmittedRequest, createCall, type Gate } from './gate.js';
import { createErrorReply } from './replies.js';
import { type RequestLog, type RouteFigures, recordResponse } from './request-log.js';
import { decodeParameter, decompress, type Reply, type Route, type RouteMatch } from './route.js';

export type Traffic = { open: number; closing: boolean; onIdle: () => void };

interface HandlerContext {
  readonly match: RouteMatch;
  readonly gate: Gate;
  readonly log: RequestLog;
  readonly traffic: Traffic;
  readonly figures: RouteFigures;
  readonly keyTraffic: Pick<KeyTraffic, 'countResponse'>;
  readonly spans: StartSpan | null;
}

const json = { 'Content-Type': 'application/json' };
const noStore = { 'Cache-Control': 'no-store' };
const closeHeader = { Connection: 'close' };
const noBody = Buffer.alloc(0);

/** Uses callbacks: promises took half of the cost of a counted answer (ADR 18). */
export class RequestHandler {
  private readonly since = performance.now();
  private readonly headers: Headers[];
  private isEnded = false;

  constructor(
    private readonly context: HandlerContext,
    private readonly exchange: Exchange,
  ) {
    this.headers = [{ 'X-Request-Id': exchange.requestId }];
    if (context.match.protocol) this.headers.push(context.match.protocol.headers);
  }

  start(): void {
    const { gate, match, traffic, spans } = this.context;
    traffic.open += 1;
    if (spans !== null) this.exchange.span = beginSpan(spans, this.exchange, match.route);
    try {
      const admitted = gate(this.exchange, match, this.headers);
      if (admitted instanceof Promise) this.awaitThen(admitted, (checked) => this.receiveBody(checked));
      else this.receiveBody(admitted);
    } catch (error) {
      this.fail(error);
    }
  }

  private receiveBody(admitted: AdmittedRequest): void {
    if (admitted.route.body === null) this.handleBody(admitted, noBody);
    else this.exchange.onBody((body) => this.handleBody(admitted, body));
  }

  private handleBody(admitted: AdmittedRequest, body: Buffer | Error): void {
    try {
      if (body instanceof Error) throw body;
      const reply = admitted.gzip ? this.decompressAndCall(admitted, body) : this.call(admitted, body);
      if (reply instanceof Promise) this.awaitThen(reply, (made) => made && this.respond(made));
      else if (reply !== undefined) this.respond(reply);
    } catch (error) {
      this.fail(error);
    }
  }

  private async decompressAndCall(admitted: AdmittedRequest, body: Buffer) {
    return this.call(admitted, await decompress(body, admitted.route.body?.limit ?? 0));
  }

  private call(admitted: AdmittedRequest, body: Buffer) {
    const ids = this.exchange.parameters.map((encoded) => decodeParameter(encoded, admitted.route.method));
    const call = createCall(this.exchange, admitted, body, (reply) => this.respond(reply));
    return admitted.route.handle(call, ...ids);
  }

  private awaitThen<Value>(coming: Promise<Value>, next: (value: Value) => void): void {
    coming.then(next).catch((error) => this.fail(error));
  }

  private fail(error: unknown): void {
    const replyOf = this.context.match.protocol?.createErrorReply ?? createErrorReply;
    if (error instanceof ClientDisconnectedError) this.end(null);
    else this.respond(replyOf(error instanceof ApiError ? error : toInternalError(error)));
  }

  private respond(reply: Reply): void {
    if (!isCompressible(reply, this.context.match.route)) this.logAndSend(reply);
    else {
      // Before the end of the body, exchange.ts adds bytes that some clients reject after gzip.
      const accepted = this.exchange.hasWholeBody ? this.exchange.header('accept-encoding') : null;
      const packed = compressReply(reply, accepted);
      this.awaitThen(packed, (one) => this.logAndSend(one));
    }
  }

  private logAndSend(reply: Reply): void {
    const { log, match } = this.context;
    try {
      if (reply.status >= 500 && reply.error) log.logFailure(this.exchange, match.route, reply.error);
      if (reply.defects) log.logPartFailures(this.exchange, match.route, reply.defects);
      this.send(reply);
    } catch (error) {
      this.end(reply, error);
    }
  }

  private send(reply: Reply): void {
    const { exchange, headers } = this;
    const { status, body, pieces, error } = reply;
    if (reply.headers?.['Content-Type'] === undefined && status !== 204) headers.push(json);
    if (reply.headers?.['Cache-Control'] === undefined) headers.push(noStore);
    if (reply.headers !== undefined) headers.push(reply.headers);
    const refused = exchange.framingProblem !== null || error?.code === 'PAYLOAD_TOO_LARGE';
    // Closing now would cut responses that clients are reading.
    if (this.context.traffic.closing) headers.push(closeHeader);
    const onEnd = (): void => this.end(reply);
    if (pieces === undefined) exchange.sendResponse({ status, headers, body }, refused, onEnd);
    else
      exchange.streamResponse({ status, headers }, pieces).then(onEnd, (problem) => this.end(reply, problem));
  }

  private end(reply: Reply | null, error?: unknown): void {
    if (this.isEnded) return;
    this.isEnded = true;
    const { match, log, traffic, figures, keyTraffic } = this.context;
    const { keyHash } = this.exchange;
    if (keyHash !== '' && reply !== null) keyTraffic.countResponse(keyHash, reply.status);
    if (error !== undefined) log.logFailure(this.exchange, match.route, error);
    else if (reply !== null)
      recordResponse(figures, reply.status, reply.isEndless ? null : performance.now() - this.since);
    endSpan(this.exchange, match.route, error === undefined && reply ? reply.status : null);
    reply?.onEnd?.();
    traffic.open -= 1;
    if (traffic.open === 0) traffic.onIdle();
  }
}

const toInternalError = (cause: unknown): ApiError =>
  new ApiError('INTERNAL', 'Internal error; retry with the same event_id.', { cause });

const beginSpan = (spans: StartSpan, exchange: Exchange, route: Route | null) =>
  spans(route ? `${exchange.method} ${route.path}` : 'HTTP', (header) => exchange.header(header));

/** `url.path` would name learners. @param status null: incomplete response */
const endSpan = ({ method, span }: Exchange, route: Route | null, status: number | null): void =>
  span?.end({
    ...{ 'url.scheme': 'http', 'http.request.method': route ? method : '_OTHER' },
    ...(route && { 'http.route': route.path }),
    ...(status && { 'http.response.status_code': status }),
    ...((status ?? 500) >= 500 && { 'error.type': `${status ?? 'incomplete'}` }),
  });
