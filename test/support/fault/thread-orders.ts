import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a worker thread can be made to do in the middle of a batch. */
export const threadFaults = [
  'exit before the commit',
  'exit after the commit',
  'loop for ever',
  'terminate',
] as const;
export type ThreadFault = (typeof threadFaults)[number] | 'kill after the commit';

/** Leaves an order for the worker threads of a process, which is read as a whole or not at all. */
export function orderThreads(folder: string, pid: number, fault: ThreadFault): void {
  const file = join(folder, `${pid}`);
  writeFileSync(`${file}.tmp`, fault);
  renameSync(`${file}.tmp`, file);
}
