/** Answers that nobody reads: memory, connections and an honest client beside many sockets that only ask. */
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { exchangeRaw, rawRequest } from '../http/http.js';
import { routeRequests } from '../http/route-requests.js';
import { nameOf, routeTable } from '../http/route-table.js';
import type { Servers } from '../servers/servers.js';
import { waitFor } from '../wait.js';
import { startNeighbour } from './neighbour.js';
import type { NeighbourFigures } from './neighbour-thread.js';
import { keys, launchStand, type Stand, watchPeak } from './stand.js';
import { unreadClients } from './unread.js';
import type { UnreadCase } from './unread-requests.js';

export interface UnreadFigures {
  readonly name: string;
  readonly sockets: number;
  /** MB of the service's process: before, at most, and within a time after the clients went. */
  readonly start: number;
  readonly peak: number;
  readonly end: number;
  /** Connections of the clients that the service still held when they were done. */
  readonly held: number;
  readonly neighbour: NeighbourFigures;
  /** Whether it answered after the clients went. */
  readonly goesOn: boolean;
}

const attackMs = 12_000;
const neighbourRate = 100;
/** Where memory grows without end the machine is not put at risk: the attack has shown what it does. */
const enoughMb = 3000;
/** Time to give memory back, in which V8 has collected all of it once, and what counts as given back. */
const settleMs = 30_000;
export const settledMb = 400;

export async function attackUnread(
  t: TestContext,
  servers: Servers,
  { name, sockets, bytes, everyMs, forMs = attackMs }: UnreadCase,
): Promise<UnreadFigures> {
  const stand = await launchStand(t, servers);
  await warmFigures(stand);
  const neighbour = await startNeighbour({ port: stand.port, key: keys.neighbour, rate: neighbourRate });
  t.after(neighbour.stop);
  await neighbour.lookFor(1000);
  const start = stand.memory();
  const own = stand.connections();
  const clients = unreadClients(stand.port, { sockets, bytes, everyMs, forMs });
  t.after(clients.end);
  const peak = watchPeak(stand);
  await clients.run(() => peak.most() > enoughMb);
  const held = Math.max(0, stand.connections() - own);
  const figures = await neighbour.look();
  clients.end();
  const end = await settledMemory(stand);
  const after = await neighbour.lookFor(1000);
  const told = { name, sockets, start, peak: peak.stop(), end, held, neighbour: figures };
  await neighbour.stop();
  await stand.stop();
  return { ...told, goesOn: after.posted - after.refused > neighbourRate / 2 };
}

/** A service that has served for a while has figures of all routes. */
async function warmFigures({ port }: Stand): Promise<void> {
  const ids = { userId: 'nobody', skillId: 'none', eventId: 'none', erasureId: 'none', webhookId: 'none' };
  for (const { method, path } of routeTable) {
    const request = routeRequests[nameOf({ method, path })]?.(ids);
    for (const key of [null, keys.neighbour])
      await exchangeRaw(port, rawRequest(key, { method, ...request }));
  }
}

async function settledMemory(stand: Stand): Promise<number> {
  await sleep(1000);
  await waitFor('memory to come back', () => stand.memory() < settledMb, settleMs).catch(() => undefined);
  return stand.memory();
}
