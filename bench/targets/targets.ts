import { fileURLToPath } from 'node:url';
import { readFamilySeconds, readMemoryMb } from './processes.js';
import { sumCpuByPart, sumMemoryMb, type ThreadNote } from './threads.js';

export const resolveBenchPath = (path: string): string =>
  fileURLToPath(new URL(path, new URL('../', import.meta.url)));

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
export const readCpuSeconds = ({ pids, threads }: Target): Record<string, number> => ({
  ...(threads && sumCpuByPart(threads())),
  ...mapValues(pids, (pid) => readFamilySeconds(pid, Object.values(pids))),
});

/** Resident MB by part, without PostgreSQL: its processes share most of their memory. */
export const readMemory = ({ pids, threads }: Target): Record<string, number> => {
  const { postgres: _, ...others } = pids;
  return { ...(threads && { server: sumMemoryMb(threads()) }), ...mapValues(others, readMemoryMb) };
};
