/** Keep-alive, with one request in flight. */
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Endpoint } from './plan.js';
import { createResponseReader, type HttpResponse } from './response-reader.js';
import type { LoadRequest } from './traffic.js';

export interface Connection {
  /** Requires the response to the previous request. @returns bytes */
  send(request: LoadRequest): number;
  close(): void;
}

export interface ConnectionEvents {
  readonly onResponse: (response: HttpResponse) => void;
  readonly onLost: (reason: string) => void;
}

const readBytes = 64 * 1024;

/** @throws Error if the server does not accept it */
export async function openConnection(endpoint: Endpoint, events: ConnectionEvents): Promise<Connection> {
  let closed = false;
  const reportLost = (reason: string): void => {
    if (closed) return;
    closed = true;
    socket.destroy();
    events.onLost(reason);
  };
  const parse = createResponseReader(events.onResponse);
  const feed = (buffer: Buffer, length: number): void => {
    try {
      parse(buffer, length);
    } catch (error) {
      reportLost(error instanceof Error ? error.message : String(error));
    }
  };
  const socket = endpoint.isTls ? openTls(endpoint, feed) : openPlain(endpoint, feed);
  await once(socket, endpoint.isTls ? 'secureConnect' : 'connect');
  socket.on('error', (error) => reportLost(error.message));
  socket.on('close', () => reportLost('the server closed a connection'));
  const format = createFormatter(endpoint);
  return {
    send: (request) => {
      const text = format(request);
      socket.write(text, 'latin1');
      return text.length;
    },
    close: () => {
      closed = true;
      socket.destroy();
    },
  };
}

type Feed = (buffer: Buffer, length: number) => void;

/** Bytes are parsed before the next read, so all reads share one buffer. */
function openPlain({ host, port }: Endpoint, feed: Feed): Socket {
  const buffer = Buffer.allocUnsafe(readBytes);
  const callback = (length: number): boolean => {
    feed(buffer, length);
    return true;
  };
  return connect({ host, port, noDelay: true, onread: { buffer, callback } });
}

function openTls({ host, port }: Endpoint, feed: Feed): Socket {
  const socket = connectTls({ host, port, servername: isIP(host) ? '' : host, ALPNProtocols: ['http/1.1'] });
  return socket.setNoDelay(true).on('data', (piece: Buffer) => feed(piece, piece.length));
}

function createFormatter({ authority, basePath, key }: Endpoint): (request: LoadRequest) => string {
  const fields = `Host: ${authority}\r\nX-API-Key: ${key}\r\n`;
  return ({ path, body }) =>
    body === null
      ? `GET ${basePath}/api/v1/${path} HTTP/1.1\r\n${fields}\r\n`
      : `POST ${basePath}/api/v1/${path} HTTP/1.1\r\n${fields}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
