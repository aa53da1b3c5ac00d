import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hasCode } from './error-code.js';

/** A process for good: the id alone is reused, after a container's restart even by the same program. */
export type ProcessIdentity = { pid: number; startedAt: string };

/** The identity of a living process, or null when there is none (a zombie is none: it holds nothing). */
export function identify(pid: number): ProcessIdentity | null {
  const startedAt = process.platform === 'linux' ? startedOnLinux(pid) : startedByPs(pid);
  return startedAt === null ? null : { pid, startedAt };
}

/** Whether the very process that was identified still lives. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAt === identity.startedAt;
}

/** proc(5): field 3 is the state, field 22 the start in clock ticks since boot; the name in field 2 has spaces. */
function startedOnLinux(pid: number): string | null {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, ticks] = [fields[0], fields[22 - 3]];
  if (state === 'Z' || state === 'X' || ticks === undefined) return null;
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${ticks}`;
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return null;
    throw error;
  }
}

function startedByPs(pid: number): string | null {
  try {
    const env = { LC_ALL: 'C', TZ: 'UTC', PATH: '/bin:/usr/bin' };
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8', env });
    const [, state = 'Z', started = ''] = /^(\S+)\s+(.*)$/.exec(line.trim()) ?? [];
    return state.startsWith('Z') ? null : started;
  } catch (error) {
    // ps exits with 1 when there is no such process.
    if (error instanceof Error && 'status' in error && error.status === 1) return null;
    throw error;
  }
}
