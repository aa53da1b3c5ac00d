/** A proxy in front of the service that records requests, and responds or hangs up as a test decides. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Scoped } from '../scope.js';
import { listen } from './ports.js';
import type { Service } from './service.js';

export interface Passed {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** Unix milliseconds. */
  readonly at: number;
}

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Null: the service responds. `lost`: the response of the service is lost. `silence`: no response. */
type Decision = Reply | 'lost' | 'silence' | null;

export interface Front {
  readonly baseUrl: string;
  readonly passed: readonly Passed[];
  /** Called for each request. By default the service responds to all. */
  decide: (request: Passed, index: number) => Decision;
}

type Target = Pick<Service, 'baseUrl' | 'key'>;

export async function startFront(t: Scoped, { baseUrl, key }: Target): Promise<Front> {
  const passed: Passed[] = [];
  const front = { baseUrl: '', passed, decide: (): Decision => null };
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '' } = request;
    const seen = { method, path, body: await text(request), at: Date.now() };
    const decision = (front as Front).decide(seen, passed.push(seen) - 1);
    if (decision === 'silence') return;
    if (decision !== null && decision !== 'lost') return send(response, decision);
    const answer = await forward(`${baseUrl}${seen.path}`, key, request, seen);
    if (decision === 'lost') response.destroy();
    else send(response, answer);
  });
  front.baseUrl = `http://127.0.0.1:${await listen(t, server)}`;
  return front;
}

const json = { 'Content-Type': 'application/json' };

/** Uses the key of the proxy if the caller sends none. */
async function forward(url: string, key: string, { headers }: IncomingMessage, { method, body }: Passed) {
  const authorized = { 'X-API-Key': `${headers['x-api-key'] ?? key}` };
  const sent = body === '' ? { headers: authorized } : { headers: { ...authorized, ...json }, body };
  const response = await fetch(url, { method, ...sent });
  return { status: response.status, body: await response.text() };
}

function send(response: ServerResponse, { status, headers = {}, body = '' }: Reply): void {
  response.writeHead(status, headers).end(body);
}
