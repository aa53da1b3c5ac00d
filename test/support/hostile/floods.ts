/** Little bytes that make much work: requests in one write, and bodies in the smallest pieces. */
import { type RequestParts, rawRequest } from '../http/http.js';
import type { Neighbour } from './neighbour.js';
import type { NeighbourFigures } from './neighbour-thread.js';
import { keys, type Stand } from './stand.js';
import { unreadClients } from './unread.js';

export interface FloodFigures {
  readonly name: string;
  /** What each client sends, once. */
  readonly bytes: number;
  readonly loopDelay: number;
  readonly neighbour: NeighbourFigures;
}

const clients = 20;
const forMs = 5000;
/** uWebSockets.js reads so much of a connection before it looks at the next one. */
const readBytes = 512 * 1024;

const filled = (piece: Buffer): Buffer => Buffer.alloc(readBytes, piece);

const inChunks = (key: string | null): Buffer => {
  const headers: RequestParts['headers'] = {
    'Content-Type': 'application/json',
    'Transfer-Encoding': 'chunked',
  };
  const head = rawRequest(key, { path: '/api/v1/track-answers', headers });
  return Buffer.concat([head, filled(Buffer.from('1\r\nx\r\n'))]);
};
const get = (path: string, key: string | null = null): Buffer =>
  filled(rawRequest(key, { method: 'GET', path }));

export const floods: readonly { readonly name: string; readonly bytes: Buffer }[] = [
  { name: 'GET /livez again and again', bytes: get('/livez') },
  { name: 'GET of an unknown path', bytes: get('/nowhere') },
  { name: 'GET without a key', bytes: get('/api/v1/skills') },
  { name: 'chunks of a byte without a key', bytes: inChunks(null) },
  { name: 'chunks of a byte', bytes: inChunks(keys.attacker) },
];

export async function flood(
  stand: Stand,
  neighbour: Neighbour,
  { name, bytes }: (typeof floods)[number],
): Promise<FloodFigures> {
  await neighbour.settle();
  await stand.loopDelay();
  const sent = unreadClients(stand.port, { sockets: clients, bytes, everyMs: 2 * forMs, forMs });
  await sent.run(() => false);
  const figures = await neighbour.look();
  const loopDelay = await stand.loopDelay();
  sent.end();
  return { name, bytes: bytes.length, loopDelay, neighbour: figures };
}
