/** What is measured: servers of a benchmark, and the processes whose CPU time their answers cost. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../src/config.js';
import { freePort } from '../src/embedded/ports.js';
import { cpuSeconds, startProcess, stopProcess } from './processes.js';

export const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export interface Target {
  readonly name: string;
  readonly port: number;
  readonly key: string;
  /** Processes whose CPU time an answer costs. */
  readonly pids: Readonly<Record<string, number>>;
}

export async function startEcho(stops: (() => Promise<void>)[]): Promise<Target> {
  const port = await freePort();
  const { child } = await startProcess([here('./peers/echo.js'), `${port}`], {});
  stops.push(() => stopProcess(child));
  return { name: 'bare echo', port, key: 'none', pids: { server: child.pid as number } };
}

export async function startService(dataDir: string, stops: (() => Promise<void>)[]): Promise<Target> {
  const port = await freePort();
  const env = childEnvironment({ PORT: `${port}`, DATA_DIR: dataDir, LOG_LEVEL: 'warn' });
  const { child } = await startProcess([here('../../src/setup.mjs'), 'start'], env);
  stops.push(() => stopProcess(child));
  const servers: Record<string, { pid: number }> = JSON.parse(
    readFileSync(join(dataDir, 'servers.json'), 'utf8'),
  );
  const pids = Object.fromEntries(Object.entries(servers).map(([name, { pid }]) => [name, pid]));
  const key = readFileSync(join(dataDir, 'api-key'), 'utf8').trim();
  return { name: 'track-answer', port, key, pids: { server: child.pid as number, ...pids } };
}

/** CPU seconds so far, by process. */
export const cpuOf = ({ pids }: Target): Record<string, number> =>
  Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuSeconds(pid)]));
