/** CPU time of a service by what its threads do, from the notes that they leave (thread-notes.ts). */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpuSeconds, memoryMb, threadSeconds } from './processes.js';

export interface ThreadNote {
  readonly pid: number;
  /** Null where the system does not tell. */
  readonly tid: number | null;
  readonly isMain: boolean;
}

export function readNotes(folder: string): ThreadNote[] {
  return readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
}

const processesOf = (notes: readonly ThreadNote[]): number[] => [...new Set(notes.map(({ pid }) => pid))];
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/**
 * CPU seconds so far of all processes that left notes: main threads, worker threads, and the threads of Node itself
 * (garbage collection, compiling). One figure where threads cannot be told apart.
 */
export function cpuByThreads(notes: readonly ThreadNote[]): Record<string, number> {
  const whole = sum(processesOf(notes).map(cpuSeconds));
  const threads = notes.flatMap(({ pid, tid, isMain }) =>
    tid === null ? [] : [{ isMain, seconds: threadSeconds(pid, tid) }],
  );
  if (threads.length === 0) return { server: whole };
  const of = (main: boolean): number =>
    sum(threads.filter(({ isMain }) => isMain === main).map(({ seconds }) => seconds));
  const frontEnd = of(true);
  const workers = of(false);
  return { 'front end': frontEnd, workers, runtime: Math.max(0, whole - frontEnd - workers) };
}

/** Resident memory of all processes that left notes, MB. */
export const memoryOfNotes = (notes: readonly ThreadNote[]): number => sum(processesOf(notes).map(memoryMb));
