/** Keep-alive, with one request in flight. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createResponseReader } from './response-reader.js';

export interface Connection {
  /** Requires the response to the previous request. */
  send(request: Buffer): void;
  close(): void;
}

export interface ConnectionEvents {
  readonly onResponse: (status: number) => void;
  readonly onLost: (reason: string) => void;
}

const readBytes = 64 * 1024;

export async function openConnection(port: number, events: ConnectionEvents): Promise<Connection> {
  const feed = createResponseReader(events.onResponse);
  // Bytes are parsed before the next read, so all reads share one buffer.
  const onread = {
    buffer: Buffer.allocUnsafe(readBytes),
    callback: (length: number, buffer: Uint8Array): boolean => {
      feed(buffer as Buffer, length);
      return true;
    },
  };
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread });
  await once(socket, 'connect');
  let closed = false;
  const reportLost = (reason: string): void => {
    if (!closed) events.onLost(reason);
    closed = true;
  };
  socket.on('error', (error) => reportLost(error.message));
  socket.on('close', () => reportLost('the server closed a connection'));
  return {
    send: (request) => socket.write(request),
    close: () => {
      closed = true;
      socket.destroy();
    },
  };
}
