/** What keeps a connection to Redis from serving. */
import type { EventEmitter } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { troubleOf } from '../../connection-trouble.js';

/** The last error of each connection since it served. */
const lastErrors = new WeakMap<EventEmitter, Error>();

/** What follows from an error that was told before. */
const consequences = new Set(['Connection is closed.', 'Failed to refresh slots cache.']);

/** Hears of a connection's errors that are causes; of a Cluster every node's count. */
function onCause(client: EventEmitter, hear: (error: Error) => void): void {
  const listen = (error: Error): void => {
    if (!consequences.has(error.message)) hear(error);
  };
  client.on('error', listen);
  client.on('node error', listen);
}

/** @param client from its first moment on */
export function noteErrors(client: EventEmitter): void {
  onCause(client, (error) => lastErrors.set(client, error));
  client.on('ready', () => lastErrors.delete(client));
}

/** Undefined for a connection that serves, or has not failed yet. */
export const lastErrorOf = (client: EventEmitter): Error | undefined => lastErrors.get(client);

const tellAgainMs = 60_000;

/** Tells of losses of a connection by their causes, each once a minute, and of their end. */
export function tellLosses(client: EventEmitter, tell: (text: string) => void, back: () => void): void {
  const told = new Map<string, number>();
  let isLost = false;
  onCause(client, (error) => {
    const { text } = troubleOf(error);
    if (performance.now() - (told.get(text) ?? Number.NEGATIVE_INFINITY) < tellAgainMs) return;
    isLost = true;
    told.set(text, performance.now());
    tell(text);
  });
  client.on('ready', () => {
    if (isLost) back();
    isLost = false;
  });
}

const probeMs = 2000;

/**
 * Whether the server speaks TLS where the URL says no, or none where it says so: the one looks like a connection that
 * breaks, the other like a server that never answers. Nothing secret is sent.
 *
 * @param url one node's. @returns what is wrong, or null
 */
export async function tlsMismatch(url: string): Promise<string | null> {
  const { protocol, hostname, port } = new URL(url);
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
  if (protocol === 'rediss:')
    return (await answersPlainly(connectPlain(place))) ? 'rediss:// but the server speaks no TLS' : null;
  const socket = connectTls({ ...place, rejectUnauthorized: false });
  return (await happens(socket, 'secureConnect')) ? 'redis:// but the server wants TLS' : null;
}

/** Whatever it says to a stranger, it says it in the protocol's plain text. */
function answersPlainly(socket: Socket): Promise<boolean> {
  socket.write('PING\r\n');
  return happens(socket, 'data');
}

function happens(socket: Socket, event: string): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (happened: boolean): void => {
      socket.destroy();
      resolve(happened);
    };
    socket.setTimeout(probeMs, () => end(false));
    socket.once(event, () => end(true));
    socket.once('error', () => end(false));
    socket.once('close', () => end(false));
  });
}
