/** The service as a process, on servers that outlive it, so that each attack meets a fresh one with the same data. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { readMemoryMb } from '../../../bench/targets/processes.js';
import { probeRedis } from '../../../src/embedded/probe.js';
import type { Servers } from '../servers/servers.js';
import { launchService } from '../servers/service-process.js';
import { waitFor } from '../wait.js';
import { loopWatchSettings } from './loop-watch.js';

/** Keys by what they are for; their quota is never reached, for quotas are not what is attacked. */
export const keys = { attacker: 'key-attacker', wide: 'key-wide', neighbour: 'key-neighbour' } as const;
/** The key's tenant. */
export const tenantOf = (key: string): string => key.replace('key-', '');
const keySettings = Object.values(keys).map((key) => `${key}:${tenantOf(key)}:1000000000`);

export interface Stand {
  readonly port: number;
  /** Resident memory of the service's process, MB. */
  memory(): number;
  /** Connections that the service holds. */
  connections(): number;
  /** Longest time that its event loop was held since the last look, ms. */
  loopDelay(): Promise<number>;
  stop(): Promise<void>;
}

let launched = 0;

/** @param settings beside what every service of these tests has */
export async function launchStand(
  t: TestContext,
  { env }: Servers,
  settings: Readonly<Record<string, string>> = {},
): Promise<Stand> {
  // What a service that was killed has asked of it is still done.
  await waitFor('Redis', async () => (await probeRedis(env.REDIS_URL as string)) === null);
  launched += 1;
  const portFile = join(env.DATA_DIR as string, `loop-port-${launched}`);
  const { child, port, ended } = await launchService(t, {
    ...env,
    ...loopWatchSettings(portFile),
    API_KEYS: keySettings.join(),
    LOG_LEVEL: 'error',
    AUDIT_INTERVAL_HOURS: '0',
    FIT_INTERVAL_HOURS: '0',
    ...settings,
  });
  const pid = child.pid as number;
  const loopPort = await portIn(portFile);
  return {
    port,
    memory: () => readMemoryMb(pid),
    connections: () => heldConnections(port),
    loopDelay: async () => Number(await text(connect(loopPort, '127.0.0.1'))),
    // Where it stands still, it would take its time.
    stop: () => ended('SIGKILL'),
  };
}

async function portIn(file: string): Promise<number> {
  let port = 0;
  await waitFor('the watch of the event loop', () => {
    try {
      port = Number(readFileSync(file, 'utf8'));
    } catch {
      return false;
    }
    return port > 0;
  });
  return port;
}

/** Established, or closed by the other side only (states 01 and 08 of Linux); a client that never reads is told nothing. */
function heldConnections(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address = '', , state]) => address.endsWith(local) && (state === '01' || state === '08'))
    .length;
}

/** Memory at most, from now on. */
export function watchPeak(stand: Stand): { most: () => number; stop: () => number } {
  let most = 0;
  const look = (): void => {
    most = Math.max(most, stand.memory());
  };
  const timer = setInterval(look, 100);
  const stop = (): number => {
    clearInterval(timer);
    return most;
  };
  return { most: () => most, stop };
}
