import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { computeSum } from '../../src/lists.js';

/** USER_HZ, in which Linux counts CPU time. */
const ticksPerSecond = 100;
const maxStartMs = 60_000;
const maxStopMs = 6000;

/**
 * Includes children, also ended ones.
 * @param except children measured separately
 */
export function readFamilySeconds(pid: number, except: readonly number[] = []): number {
  if (process.platform !== 'linux') return parsePsTime(runPs('time=', pid));
  const own =
    Math.max(readStatSeconds(`/proc/${pid}/stat`), sumThreadSeconds(pid)) +
    readStatSeconds(`/proc/${pid}/stat`, childFields);
  const children = listChildren(pid).filter((child) => !except.includes(child));
  return children.reduce(
    (total, child) => total + readOrDefault(() => readFamilySeconds(child, except)),
    own,
  );
}

const listChildren = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((tid) =>
    readOrDefault(() => readFileSync(`/proc/${pid}/task/${tid}/children`, 'utf8'), '')
      .split(' ')
      .filter((child) => child.trim() !== '')
      .map(Number),
  );

/** Processes and threads may end during a read. */
export function readOrDefault<Found>(read: () => Found, fallback: Found = 0 as Found): Found {
  try {
    return read();
  } catch {
    return fallback;
  }
}

/** Of living threads. More exact than the ticks of the process, which include ended threads. */
const sumThreadSeconds = (pid: number): number =>
  computeSum(readdirSync(`/proc/${pid}/task`).map((tid) => readThreadSeconds(pid, Number(tid))));

const nanoseconds = 1e9;

/** CPU seconds of a thread, in nanosecond resolution; Linux only. */
export const readThreadSeconds = (pid: number, tid: number): number =>
  readOrDefault(
    () => Number(readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]) / nanoseconds,
  );

export function readMemoryMb(pid: number): number {
  if (process.platform !== 'linux') return Number(runPs('rss=', pid)) / 1024;
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes ?? 0) / 1024;
}

/** CPU seconds of ended children of this process; 0 except on Linux. */
export const readChildrenSeconds = (): number =>
  process.platform === 'linux' ? readStatSeconds('/proc/self/stat', childFields) : 0;

/** Fields of user time after the state; system time follows (proc(5): utime, cutime). */
const [ownFields, childFields] = [11, 13] as const;

function readStatSeconds(file: string, place: number = ownFields): number {
  const stat = readFileSync(file, 'utf8');
  // A process name can contain spaces, so count from its closing parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[place]) + Number(fields[place + 1])) / ticksPerSecond;
}

const runPs = (field: string, pid: number): string =>
  execFileSync('ps', ['-o', field, '-p', `${pid}`], { encoding: 'utf8' });

const parsePsTime = (time: string): number =>
  time
    .trim()
    .split(':')
    .reduce((seconds, part) => seconds * 60 + Number(part), 0);

/** Waits for the first output. @throws Error if the program ends or is silent */
export async function startProcess(args: readonly string[], env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawnNode(args, env);
  const ended = once(child, 'exit').then(([code]) => `exited with code ${code}`);
  const late = sleep(maxStartMs, `did not start within ${maxStartMs / 1000} s`, { ref: false });
  const failure = Promise.race([ended, late]).then((outcome) => {
    throw new Error(`${args[0]} ${outcome}`);
  });
  await Promise.race([once(child.stdout as Readable, 'data'), failure]);
  return child;
}

const tetherOption = `--import=${new URL('./tether.js', import.meta.url).href}`;

/** Detached: Ctrl-C reaches only the benchmark, which stops its processes in order. */
const spawnNode = (args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess =>
  spawn(process.execPath, [tetherOption, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });

export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const killer = setTimeout(() => child.kill('SIGKILL'), maxStopMs);
  child.kill('SIGTERM');
  await once(child, 'exit');
  clearTimeout(killer);
}
