/** Ledger clients in several processes. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Scoped } from '../servers/service.js';
import type { ClientSettings } from './client.js';
import { joined, type Ledger } from './ledger.js';

const entry = fileURLToPath(new URL('./client-process.js', import.meta.url));

export interface Clients {
  /** Everything that was sent and told, when all of it is confirmed or given up. */
  stop(): Promise<Ledger>;
}

/** Starts one process for each of the settings; they end with the test at the latest. */
export function startClients(t: Scoped, settings: readonly ClientSettings[]): Clients {
  const children = settings.map((one) => {
    const child = fork(entry, { serialization: 'advanced' });
    t.after(() => child.kill('SIGKILL'));
    child.send(one);
    return child;
  });
  return { stop: async () => joined(await Promise.all(children.map(ledgerOf))) };
}

async function ledgerOf(child: ChildProcess): Promise<Ledger> {
  const told = once(child, 'message');
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a ledger client ended with ${code}`);
  });
  ended.catch(() => undefined);
  child.send('stop');
  const [ledger] = await Promise.race([told, ended]);
  return ledger;
}
