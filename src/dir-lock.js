// @ts-check
/**
 * Locks a folder: a checkout during its set-up, or DATA_DIR while a service runs. Plain JavaScript, because src/setup.mjs
 * uses it before the build.
 *
 * The file `lock.N` with the highest N is the lock. It is free if its owner is dead or has released it. A process acquires it by
 * creating `lock.N+1` as a hard link, so exactly one process wins. The highest file is never removed: a process that paused
 * after its check cannot acquire an outdated lock.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Process ids are reused, after a container's restart even by the same program.
 * @typedef {{ pid: number, startedAt: string }} ProcessIdentity
 */

/** An attempt fails only if another process wins at the same moment. */
const maxTries = 20;
/** @type {ProcessIdentity} */
const releasedOwner = { pid: 0, startedAt: 'released' };

/**
 * Acquires the lock for this process, without waiting.
 * @param {string} dir
 * @returns {{ release: () => void } | { heldBy: ProcessIdentity }}
 * @throws Error if the folder cannot be read or written
 */
export function lockDir(dir) {
  const self = identifyProcess(process.pid);
  if (self === null) throw new Error(`cannot read the start time of process ${process.pid}`);
  for (let tries = 0; tries < maxTries; tries++) {
    const top = Math.max(0, ...listLockNumbers(dir));
    const owner = top === 0 ? releasedOwner : readOwner(lockFile(dir, top));
    // A file without a process id has no owner.
    if (isAlive(owner ?? releasedOwner)) return { heldBy: owner };
    const mine = top + 1;
    if (createLockFile(dir, mine, self) && Math.max(...listLockNumbers(dir)) === mine) {
      for (const n of listLockNumbers(dir)) if (n < mine) rmSync(lockFile(dir, n), { force: true });
      return { release: () => renameSync(writeOwnerFile(dir, releasedOwner), lockFile(dir, mine)) };
    }
  }
  throw new Error(`cannot lock ${dir}; stop all instances and delete its lock.* files`);
}

/** @type {(dir: string, n: number) => string} */
const lockFile = (dir, n) => join(dir, `lock.${n}`);

/** @type {(dir: string) => number[]} */
const listLockNumbers = (dir) =>
  readdirSync(dir).flatMap((name) => {
    const n = /^lock\.(\d+)$/.exec(name)?.[1];
    return n === undefined ? [] : [Number(n)];
  });

/** @param {string} file @returns {ProcessIdentity} */
function readOwner(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    // Removed, so a higher lock exists.
    if (isCode(error, 'ENOENT')) return releasedOwner;
    throw new Error(`cannot read ${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** @param {string} dir @param {ProcessIdentity} owner @returns {string} */
function writeOwnerFile(dir, owner) {
  const fresh = join(dir, `lock-${process.pid}-${randomBytes(4).toString('hex')}`);
  try {
    writeFileSync(fresh, JSON.stringify(owner), { mode: 0o600, flag: 'wx', flush: true });
    return fresh;
  } catch (error) {
    rmSync(fresh, { force: true });
    throw new Error(`cannot write ${fresh}: ${messageOf(error)}`, { cause: error });
  }
}

/** @param {string} dir @param {number} n @param {ProcessIdentity} self @returns false if another process created it */
function createLockFile(dir, n, self) {
  const fresh = writeOwnerFile(dir, self);
  try {
    linkSync(fresh, lockFile(dir, n));
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    rmSync(fresh);
  }
}

/**
 * Null: no living process; a zombie counts as dead.
 * @param {number} pid @returns {ProcessIdentity | null}
 */
export function identifyProcess(pid) {
  const startedAt = process.platform === 'linux' ? startedOnLinux(pid) : startedByPs(pid);
  return startedAt === null ? null : { pid, startedAt };
}

/** False if the process id was reused. @type {(identity: ProcessIdentity) => boolean} */
export const isAlive = ({ pid, startedAt }) => identifyProcess(pid)?.startedAt === startedAt;

/**
 * proc(5): field 3 is the state, field 22 the start in clock ticks since boot. The name in field 2 can contain spaces.
 * @param {number} pid
 */
function startedOnLinux(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state = 'X', ticks] = [fields[0], fields[22 - 3]];
    if ('ZX'.includes(state)) return null;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${ticks}`;
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ESRCH')) return null;
    throw error;
  }
}

/** @param {number} pid */
function startedByPs(pid) {
  try {
    const env = { LC_ALL: 'C', TZ: 'UTC', PATH: '/bin:/usr/bin' };
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8', env });
    const [, state = 'Z', started = ''] = /^(\S+)\s+(.*)$/.exec(line.trim()) ?? [];
    return state.startsWith('Z') ? null : started;
  } catch (error) {
    // ps exits with 1 if the process does not exist.
    if (error instanceof Error && 'status' in error && error.status === 1) return null;
    throw error;
  }
}

/** @param {unknown} error @param {string[]} codes */
const isCode = (error, ...codes) =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code));

/** @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));
