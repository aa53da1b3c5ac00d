import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';

export async function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

/** The program has the shell's process id. `cat` returns when this process has closed the other end of fd 3. */
const boundScript = '(cat <&3 >/dev/null; kill -KILL $$) & exec "$0" "$@" 3<&-';

/** Spawns a program that ends when this process dies, which runs no hooks after a signal. */
export function spawnBound(program: string, args: readonly string[]): ChildProcess {
  const child = spawn('sh', ['-c', boundScript, program, ...args], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  child.once('exit', () => child.stdio[3]?.destroy());
  return child;
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
