/** An HTTP proxy before ClickHouse that cuts connections, requests or responses. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Scoped } from '../scope.js';
import { listen } from '../servers/ports.js';

/**
 * `pass` changes nothing; `down` closes every connection; `deaf` executes statements and drops their responses; `torn` sends
 * half of a statement; `late` delays statements until the mode changes, even if their sender has ended.
 */
export type GatewayMode = 'pass' | 'down' | 'deaf' | 'torn' | 'late';

const inserts = /^INSERT INTO attempts/;

export type Gateway = Awaited<ReturnType<typeof startGateway>>;

export async function startGateway(t: Scoped, target: string) {
  let mode: GatewayMode = 'pass';
  let pattern = inserts;
  let cuts = 0;
  let release = (): void => undefined;
  let released = Promise.resolve();
  const late: Promise<void>[] = [];

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (mode === 'down') {
      cuts += 1;
      return void incoming.socket.destroy();
    }
    const body = await buffer(incoming);
    const action = pattern.test(readStatement(incoming, body)) ? mode : 'pass';
    if (action !== 'late') {
      await forward(target, incoming, body, outgoing, action);
      if (action !== 'pass') cuts += 1;
      return;
    }
    const sent = released.then(() => forward(target, incoming, body, outgoing, 'pass'));
    late.push(sent);
    cuts += 1;
    await sent;
  }

  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  const url = new URL(target);
  url.port = `${await listen(t, server)}`;
  return {
    url: url.href,
    /** @param statements for which the modes `deaf`, `torn` and `late` apply */
    set: (next: GatewayMode, statements = inserts): void => {
      if (next !== 'late') release();
      else if (mode !== 'late')
        released = new Promise((resolve) => {
          release = resolve;
        });
      mode = next;
      pattern = statements;
    },
    /** Number of affected requests; a request counts after its effect. */
    cuts: () => cuts,
    /** Resolves when ClickHouse has executed the late statements. */
    caughtUp: () => Promise.all(late),
  };
}

/** An INSERT with data is in the URL, other statements are in the body. */
const readStatement = ({ url }: IncomingMessage, body: Buffer): string =>
  new URL(url ?? '', 'http://gateway').searchParams.get('query') ?? body.toString();

async function forward(
  target: string,
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
  mode: GatewayMode,
): Promise<void> {
  const { hostname, port } = new URL(target);
  const { method, url: path, headers } = incoming;
  const { 'transfer-encoding': _, ...others } = headers;
  const sent = request({
    ...{ hostname, port, method, path },
    headers: { ...others, 'content-length': body.length, connection: 'close' },
  });
  if (mode === 'torn') {
    sent.on('error', () => undefined);
    sent.write(body.subarray(0, body.length / 2), () => sent.destroy());
    incoming.socket.destroy();
    return;
  }
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const content = await buffer(response);
  if (mode === 'deaf') incoming.socket.destroy();
  else outgoing.writeHead(response.statusCode ?? 500, response.headers).end(content);
}
