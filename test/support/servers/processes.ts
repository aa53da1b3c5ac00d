import { execFileSync } from 'node:child_process';

/** Process ids of a process group, without zombies. */
export function groupMembers(pgid: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,pgid=,stat='], { encoding: 'utf8' }).split('\n');
  return lines.flatMap((line) => {
    const [pid, group, state = 'Z'] = line.trim().split(/\s+/);
    return Number(group) === pgid && !state.startsWith('Z') ? [Number(pid)] : [];
  });
}

/** Process ids of children with the text in their command line. */
export function childrenOf(parent: number, text: string): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  return lines.flatMap((line) => {
    const [pid, ppid] = line.trim().split(/\s+/);
    return Number(ppid) === parent && line.includes(text) ? [Number(pid)] : [];
  });
}
