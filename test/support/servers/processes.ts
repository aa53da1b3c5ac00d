import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';

export async function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

/** Columns of all processes. */
const listProcesses = (columns: string): string[][] =>
  execFileSync('ps', ['-A', '-o', columns], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/));

/** Process ids of a process group, without zombies. */
export const groupMembers = (pgid: number): number[] =>
  listProcesses('pid=,pgid=,stat=')
    .filter(([, group, state = 'Z']) => Number(group) === pgid && !state.startsWith('Z'))
    .map(([pid]) => Number(pid));

/** Process ids of children with the text in their command line. */
export const childrenOf = (parent: number, text: string): number[] =>
  listProcesses('pid=,ppid=,args=')
    .filter(([, ppid, ...words]) => Number(ppid) === parent && words.join(' ').includes(text))
    .map(([pid]) => Number(pid));
