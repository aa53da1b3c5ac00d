import { fileURLToPath } from 'node:url';
import { familySeconds, memoryMb } from './processes.js';
import { cpuByThreads, memoryOfNotes, type ThreadNote } from './threads.js';

export const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export interface Target {
  readonly name: string;
  readonly port: number;
  /** Processes by part. */
  readonly pids: Readonly<Record<string, number>>;
  /** Threads of further processes. */
  readonly threads?: () => readonly ThreadNote[];
}

const mapValues = (pids: Target['pids'], measure: (pid: number) => number): Record<string, number> =>
  Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, measure(pid)]));

/** CPU seconds by part, with children. The sum covers all processes. */
export const cpuOf = ({ pids, threads }: Target): Record<string, number> => ({
  ...(threads && cpuByThreads(threads())),
  ...mapValues(pids, (pid) => familySeconds(pid, Object.values(pids))),
});

/** Resident MB by part. */
export const memoryOf = ({ pids, threads }: Target): Record<string, number> => ({
  ...(threads && { server: memoryOfNotes(threads()) }),
  ...mapValues(pids, memoryMb),
});
