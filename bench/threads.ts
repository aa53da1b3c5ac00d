/** CPU time of Node's processes by what their threads do, from the notes that they leave (thread-notes.ts). */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { distinct, sumOf } from '../src/lists.js';
import { familySeconds, memoryMb, threadSeconds } from './processes.js';

/**
 * `runtime`: the threads of V8's platform, which compile and collect garbage. What V8 does of both in the thread that
 * needs it is in that thread's own part.
 */
export type ThreadPart = 'front end' | 'workers' | 'forecast' | 'runtime' | 'libuv';

export interface ThreadNote {
  readonly pid: number;
  /** Null where the system does not tell. */
  readonly tid: number | null;
  readonly part: ThreadPart;
}

/** An option for Node that makes a process and its threads leave notes in a folder, which is made. */
export function notesOption(folder: string, profile = false): string {
  mkdirSync(folder, { recursive: true });
  const file = pathToFileURL(join(import.meta.dirname, 'thread-notes.js')).href;
  return `--import=${file}?folder=${encodeURIComponent(folder)}${profile ? '&profile=1' : ''}`;
}

export const readNotes = (folder: string): ThreadNote[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .flatMap((name): ThreadNote[] => JSON.parse(readFileSync(join(folder, name), 'utf8')));

const processesOf = (notes: readonly ThreadNote[]): number[] => distinct(notes.map(({ pid }) => pid));

/**
 * CPU seconds so far of all processes that left notes, by their threads' parts. `rest` is what remains of those processes
 * and their children: threads that left no note, threads and children that have ended. One figure where threads cannot be told apart.
 */
export function cpuByThreads(notes: readonly ThreadNote[]): Record<string, number> {
  const pids = processesOf(notes);
  const whole = sumOf(pids.map((pid) => familySeconds(pid, pids)));
  const parts: Record<string, number> = {};
  for (const { pid, tid, part } of notes) {
    if (tid !== null) parts[part] = (parts[part] ?? 0) + threadSeconds(pid, tid);
  }
  if (Object.keys(parts).length === 0) return { server: whole };
  return { ...parts, rest: whole - sumOf(Object.values(parts)) };
}

/** Resident memory of all processes that left notes, MB. */
export const memoryOfNotes = (notes: readonly ThreadNote[]): number =>
  sumOf(processesOf(notes).map(memoryMb));
