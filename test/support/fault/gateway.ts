/** An HTTP proxy before ClickHouse that goes away, or cuts what passes through it. */
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Scoped } from '../service.js';

/**
 * `pass`: nothing; `away`: every connection ends at once; `deaf`: inserts reach ClickHouse, their answers nobody;
 * `torn`: ClickHouse gets half of an insert.
 */
export type GatewayMode = 'pass' | 'away' | 'deaf' | 'torn';

export interface Gateway {
  readonly url: string;
  set(mode: GatewayMode): void;
  /** Requests that were cut so far. */
  cuts(): number;
}

export async function startGateway(t: Scoped, target: string): Promise<Gateway> {
  let mode: GatewayMode = 'pass';
  let cuts = 0;
  const handle: RequestListener = (incoming, outgoing) => {
    const acted = mode === 'away' || isInsert(incoming) ? mode : 'pass';
    if (acted !== 'pass') cuts += 1;
    if (acted === 'away') incoming.socket.destroy();
    // What a client gives up is of no interest here.
    else forward(target, incoming, outgoing, acted).catch(() => incoming.socket.destroy());
  };
  const server = createServer(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = new URL(target);
  url.port = `${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    set: (wanted) => {
      mode = wanted;
    },
    cuts: () => cuts,
  };
}

const isInsert = ({ method, url }: IncomingMessage): boolean =>
  method === 'POST' && queryOf(url ?? '').includes('INSERT INTO attempts');

const queryOf = (url: string): string => new URL(url, 'http://gateway').searchParams.get('query') ?? '';

async function forward(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  mode: GatewayMode,
): Promise<void> {
  const { hostname, port } = new URL(target);
  const body = await buffer(incoming);
  const { method, url, headers } = incoming;
  const { 'transfer-encoding': _, ...kept } = headers;
  const sent = request({
    hostname,
    port,
    method,
    path: url,
    headers: { ...kept, 'content-length': body.length, connection: 'close' },
  });
  if (mode === 'torn') {
    sent.on('error', () => undefined);
    sent.write(body.subarray(0, body.length / 2), () => sent.destroy());
    incoming.socket.destroy();
    return;
  }
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const told = await buffer(response);
  if (mode === 'deaf') incoming.socket.destroy();
  else outgoing.writeHead(response.statusCode ?? 500, response.headers).end(told);
}
