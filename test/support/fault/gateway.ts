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
import type { Scoped } from '../servers/service.js';

/**
 * `pass`: nothing; `away`: every connection ends at once; `deaf`: statements reach ClickHouse, their answers nobody;
 * `torn`: ClickHouse gets half of a statement; `late`: statements wait here until the mode is another one, and go on then,
 * whatever became of their sender.
 */
export type GatewayMode = 'pass' | 'away' | 'deaf' | 'torn' | 'late';

export interface Gateway {
  readonly url: string;
  /** @param statements which ones are `deaf`, `torn` or `late`: inserts of answers, unless told otherwise */
  set(mode: GatewayMode, statements?: RegExp): void;
  /** Requests that were cut or stopped so far. */
  cuts(): number;
  /** Resolves when ClickHouse has answered what was late. */
  caughtUp(): Promise<unknown>;
}

export async function startGateway(t: Scoped, target: string): Promise<Gateway> {
  let mode: GatewayMode = 'pass';
  let meant = inserts;
  let cuts = 0;
  const late: Promise<unknown>[] = [];
  let released = Promise.resolve();
  let release = (): void => undefined;
  const holdUp = (): void => {
    released = new Promise((resolve) => {
      release = resolve;
    });
  };
  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (mode === 'away') {
      cuts += 1;
      incoming.socket.destroy();
      return;
    }
    const body = await buffer(incoming);
    const acted = meant.test(statementOf(incoming, body)) ? mode : 'pass';
    if (acted === 'late') {
      const sent = released.then(() => forward(target, incoming, body, outgoing, 'pass'));
      late.push(sent);
      cuts += 1;
      await sent;
      return;
    }
    await forward(target, incoming, body, outgoing, acted);
    // When it has happened: who waits for it goes on from there.
    if (acted !== 'pass') cuts += 1;
  }
  const listener: RequestListener = (incoming, outgoing) => {
    // What a client gives up is of no interest here.
    handle(incoming, outgoing).catch(() => incoming.socket.destroy());
  };
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = new URL(target);
  url.port = `${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    set: (wanted, statements = inserts) => {
      if (wanted !== 'late') release();
      else if (mode !== 'late') holdUp();
      mode = wanted;
      meant = statements;
    },
    cuts: () => cuts,
    caughtUp: () => Promise.all(late),
  };
}

const inserts = /^INSERT INTO attempts/;

/** What comes with data stands in the address, everything else is the body. */
const statementOf = ({ url }: IncomingMessage, body: Buffer): string =>
  new URL(url ?? '', 'http://gateway').searchParams.get('query') ?? body.toString();

async function forward(
  target: string,
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
  mode: GatewayMode,
): Promise<void> {
  const { hostname, port } = new URL(target);
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
