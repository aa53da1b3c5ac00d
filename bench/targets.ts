/** What is measured: servers of a benchmark, and the processes whose CPU time their answers cost. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../src/config.js';
import { freePort } from '../src/embedded/free-port.js';
import { familySeconds, memoryMb, startProcess, stopProcess } from './processes.js';
import { cpuByThreads, memoryOfNotes, type ThreadNote } from './threads.js';

export const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export interface Target {
  readonly name: string;
  readonly port: number;
  readonly key: string;
  /** Processes whose CPU time an answer costs. */
  readonly pids: Readonly<Record<string, number>>;
  /** Threads so far of further processes, whose CPU time is told apart. */
  readonly threads?: () => readonly ThreadNote[];
}

/** The service as one process with its embedded servers. */
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

const mapValues = (pids: Target['pids'], measure: (pid: number) => number): Record<string, number> =>
  Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, measure(pid)]));

/** CPU seconds so far, by part; their sum is that of all processes of the target with their children. */
export const cpuOf = ({ pids, threads }: Target): Record<string, number> => ({
  ...(threads && cpuByThreads(threads())),
  ...mapValues(pids, (pid) => familySeconds(pid, Object.values(pids))),
});

/** Resident memory in MB, by part. */
export const memoryOf = ({ pids, threads }: Target): Record<string, number> => ({
  ...(threads && { server: memoryOfNotes(threads()) }),
  ...mapValues(pids, memoryMb),
});
