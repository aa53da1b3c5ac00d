import { ApiError } from '../errors.js';
import type { Spans } from '../spans.js';
import { ClientGone, type Exchange, type Headers } from './exchange.js';
import { type Admitted, callOf, type Gate } from './gate.js';
import { errorReply } from './replies.js';
import { noteAnswer, type RequestLog, type RouteFigures } from './request-log.js';
import { decodeParameter, decompress, type Match, type Reply, type Route } from './route.js';

export type Traffic = { open: number; closing: boolean; onIdle: () => void };

interface Serving {
  readonly match: Match;
  readonly gate: Gate;
  readonly log: RequestLog;
  readonly traffic: Traffic;
  readonly counts: RouteFigures;
  readonly spans: Spans | null;
}

const json = { 'Content-Type': 'application/json' };
const closes = { Connection: 'close' };
const noBody = Buffer.alloc(0);

/** Uses callbacks: promises took half of the cost of a counted answer (ADR 32). */
export class Answering {
  private readonly since = performance.now();
  private readonly headers: Headers[];
  private isOver = false;

  constructor(
    private readonly serving: Serving,
    private readonly exchange: Exchange,
  ) {
    this.headers = [{ 'X-Request-Id': exchange.requestId }];
    if (serving.match.protocol) this.headers.push(serving.match.protocol.headers);
  }

  begin(): void {
    const { gate, match, traffic, spans } = this.serving;
    traffic.open += 1;
    if (spans !== null) this.exchange.span = beginSpan(spans, this.exchange, match.route);
    try {
      const admitted = gate(this.exchange, match, this.headers);
      if (admitted instanceof Promise) this.later(admitted, (checked) => this.receive(checked));
      else this.receive(admitted);
    } catch (error) {
      this.fail(error);
    }
  }

  private receive(admitted: Admitted): void {
    if (admitted.route.body === null) this.handle(admitted, noBody);
    else this.exchange.onBody((body) => this.handle(admitted, body));
  }

  private handle(admitted: Admitted, body: Buffer | Error): void {
    try {
      if (body instanceof Error) throw body;
      const reply = admitted.gzip ? this.unpack(admitted, body) : this.call(admitted, body);
      if (reply instanceof Promise) this.later(reply, (made) => made && this.respond(made));
      else if (reply !== undefined) this.respond(reply);
    } catch (error) {
      this.fail(error);
    }
  }

  private async unpack(admitted: Admitted, body: Buffer) {
    return this.call(admitted, await decompress(body, admitted.route.body?.limit ?? 0));
  }

  private call(admitted: Admitted, body: Buffer) {
    const ids = this.exchange.parameters.map(decodeParameter);
    const call = callOf(this.exchange, admitted, body, (reply) => this.respond(reply));
    return admitted.route.handle(call, ...ids);
  }

  private later<Value>(coming: Promise<Value>, next: (value: Value) => void): void {
    coming.then(next).catch((error) => this.fail(error));
  }

  private fail(error: unknown): void {
    const replyOf = this.serving.match.protocol?.errorReply ?? errorReply;
    if (error instanceof ClientGone) this.end(null);
    else this.respond(replyOf(error instanceof ApiError ? error : internal(error)));
  }

  private respond(reply: Reply): void {
    const { log, match } = this.serving;
    try {
      if (reply.status >= 500 && reply.error) log.failed(this.exchange, match.route, reply.error);
      if (reply.defects) log.partsFailed(this.exchange, match.route, reply.defects);
      this.send(reply);
    } catch (error) {
      this.end(reply, error);
    }
  }

  private send(reply: Reply): void {
    const { exchange, headers } = this;
    const { status, body, pieces, error } = reply;
    if (reply.headers?.['Content-Type'] === undefined && status !== 204) headers.push(json);
    if (reply.headers !== undefined) headers.push(reply.headers);
    const refused = exchange.framingProblem !== null || error?.code === 'PAYLOAD_TOO_LARGE';
    // Closing now would cut responses that clients are reading.
    if (this.serving.traffic.closing) headers.push(closes);
    const over = (): void => this.end(reply);
    if (pieces === undefined) exchange.answer({ status, headers, body }, refused, over);
    else exchange.stream({ status, headers }, pieces).then(over, (problem) => this.end(reply, problem));
  }

  private end(reply: Reply | null, error?: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    const { match, log, traffic, counts } = this.serving;
    if (error !== undefined) log.failed(this.exchange, match.route, error);
    else if (reply !== null)
      noteAnswer(counts, reply.status, reply.goesOn ? null : performance.now() - this.since);
    endSpan(this.exchange, match.route, error === undefined && reply ? reply.status : null);
    reply?.onOver?.();
    traffic.open -= 1;
    if (traffic.open === 0) traffic.onIdle();
  }
}

const internal = (cause: unknown): ApiError =>
  new ApiError('INTERNAL', 'Something went wrong on our side; try again with the same event_id', { cause });

const beginSpan = (spans: Spans, exchange: Exchange, route: Route | null) =>
  spans(route ? `${exchange.method} ${route.path}` : 'HTTP', (header) => exchange.header(header));

/** `url.path` would name learners. @param status null: incomplete response */
const endSpan = ({ method, span }: Exchange, route: Route | null, status: number | null): void =>
  span?.end({
    ...{ 'url.scheme': 'http', 'http.request.method': route ? method : '_OTHER' },
    ...(route && { 'http.route': route.path }),
    ...(status && { 'http.response.status_code': status }),
    ...((status ?? 500) >= 500 && { 'error.type': `${status ?? 'incomplete'}` }),
  });
