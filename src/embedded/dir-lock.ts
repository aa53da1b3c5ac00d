import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { StartError } from '../lifecycle.js';
import { hasCode, readJson, writePrivate } from './private-file.js';

/** Each is lost to a process that began at the same moment; so many are lost to none. */
const maxTries = 20;

/** A process for good: the id alone is reused, after a container's restart even by the same program. */
export const processIdentity = Type.Object({ pid: Type.Integer(), startedAt: Type.String() });
export type ProcessIdentity = Static<typeof processIdentity>;

/** Of no process: its owner has let go of the lock. */
const released: ProcessIdentity = { pid: 0, startedAt: 'released' };

/**
 * Takes the lock of a folder for this process, without waiting.
 *
 * The lock is the file `lock.N` with the highest N; it is free when its owner is dead or has released it. Who
 * wants it makes `lock.N+1` with a hard link, which fails when the file exists: of many at a stale lock exactly
 * one wins. Numbers only grow, and the highest file is never removed, so a starter that slept since it looked
 * cannot take a lock that moved on: it sees a higher number and steps back.
 */
export function lockDir(dir: string): { release(): void } | { heldBy: ProcessIdentity } {
  const self = identify(process.pid);
  if (self === null) throw new Error(`process ${process.pid} cannot see itself`);
  for (let tries = 0; tries < maxTries; tries++) {
    const top = highest(dir);
    // Gone (then a higher one exists), or without an owner's name: nobody has it.
    const owner = top === 0 ? null : readJson(fileOf(dir, top));
    if (Value.Check(processIdentity, owner) && isAlive(owner)) return { heldBy: owner };
    const mine = top + 1;
    if (create(dir, mine, self) && highest(dir) === mine) {
      for (const n of numbers(dir)) if (n < mine) rmSync(fileOf(dir, n), { force: true });
      return { release: () => writePrivate(fileOf(dir, mine), released) };
    }
  }
  throw new StartError(
    `DATA_DIR: the lock of ${dir} cannot be taken: delete its lock.* when no instance runs`,
  );
}

const fileOf = (dir: string, n: number): string => join(dir, `lock.${n}`);

function numbers(dir: string): number[] {
  return readdirSync(dir).flatMap((name) => {
    const n = /^lock\.(\d+)$/.exec(name)?.[1];
    return n === undefined ? [] : [Number(n)];
  });
}

const highest = (dir: string): number => Math.max(0, ...numbers(dir));

/** @returns false when another process has made this number */
function create(dir: string, n: number, self: ProcessIdentity): boolean {
  const fresh = join(dir, `lock-${process.pid}-${randomBytes(4).toString('hex')}`);
  writePrivate(fresh, self);
  try {
    linkSync(fresh, fileOf(dir, n));
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    rmSync(fresh);
  }
}

/** The identity of a living process, or null when there is none (a zombie is none: it holds nothing). */
export function identify(pid: number): ProcessIdentity | null {
  const startedAt = process.platform === 'linux' ? startedOnLinux(pid) : startedByPs(pid);
  return startedAt === null ? null : { pid, startedAt };
}

/** Whether the very process that was identified still lives. */
export const isAlive = ({ pid, startedAt }: ProcessIdentity): boolean =>
  identify(pid)?.startedAt === startedAt;

/** proc(5): field 3 is the state, field 22 the start in clock ticks since boot; the name in field 2 has spaces. */
function startedOnLinux(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, ticks] = [fields[0], fields[22 - 3]];
    if (state === 'Z' || state === 'X' || ticks === undefined) return null;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${ticks}`;
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
