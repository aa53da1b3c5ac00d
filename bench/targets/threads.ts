import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { computeSum, distinct } from '../../src/lists.js';
import { readFamilySeconds, readMemoryMb, readThreadSeconds } from './processes.js';

/** `runtime`: V8's threads, which compile and collect garbage. */
export type ThreadPart = 'front end' | 'workers' | 'forecast' | 'runtime' | 'libuv';

export interface ThreadNote {
  readonly pid: number;
  /** Null outside Linux. */
  readonly tid: number | null;
  readonly part: ThreadPart;
}

export function buildNotesOption(folder: string, profile = false): string {
  mkdirSync(folder, { recursive: true });
  const file = pathToFileURL(join(import.meta.dirname, 'thread-notes.js')).href;
  return `--import=${file}?folder=${encodeURIComponent(folder)}${profile ? '&profile=1' : ''}`;
}

export const readNotes = (folder: string): ThreadNote[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .flatMap((name): ThreadNote[] => JSON.parse(readFileSync(join(folder, name), 'utf8')));

const listProcesses = (notes: readonly ThreadNote[]): number[] => distinct(notes.map(({ pid }) => pid));

/**
 * CPU seconds by part. `rest`: other and ended threads, and children. Only `server` if threads cannot be
 * distinguished.
 */
export function sumCpuByPart(notes: readonly ThreadNote[]): Record<string, number> {
  const pids = listProcesses(notes);
  const whole = computeSum(pids.map((pid) => readFamilySeconds(pid, pids)));
  const parts: Record<string, number> = {};
  for (const { pid, tid, part } of notes) {
    if (tid !== null) parts[part] = (parts[part] ?? 0) + readThreadSeconds(pid, tid);
  }
  if (Object.keys(parts).length === 0) return { server: whole };
  return { ...parts, rest: whole - computeSum(Object.values(parts)) };
}

export const sumMemoryMb = (notes: readonly ThreadNote[]): number =>
  computeSum(listProcesses(notes).map(readMemoryMb));
