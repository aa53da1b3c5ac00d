/** What is measured: servers of a benchmark, and the processes whose CPU time their answers cost. */
import { fileURLToPath } from 'node:url';
import { familySeconds, memoryMb } from './processes.js';
import { cpuByThreads, memoryOfNotes, type ThreadNote } from './threads.js';

export const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export interface Target {
  readonly name: string;
  readonly port: number;
  /** Processes whose CPU time an answer costs. */
  readonly pids: Readonly<Record<string, number>>;
  /** Threads so far of further processes, whose CPU time is told apart. */
  readonly threads?: () => readonly ThreadNote[];
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
