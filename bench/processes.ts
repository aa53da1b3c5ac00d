import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

/** USER_HZ, in which Linux counts CPU time. */
const ticksPerSecond = 100;
const startLimitMs = 60_000;
const stopLimitMs = 6000;

/**
 * Includes children, also ended ones.
 * @param except children measured separately
 */
export function familySeconds(pid: number, except: readonly number[] = []): number {
  if (process.platform !== 'linux') return parsePs(askPs('time=', pid));
  const own = cpuOfStat(`/proc/${pid}/stat`) + cpuOfStat(`/proc/${pid}/stat`, childFields);
  const children = childrenOf(pid).filter((child) => !except.includes(child));
  return children.reduce((total, child) => total + orGone(() => familySeconds(child, except)), own);
}

const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((tid) =>
    orGone(() => readFileSync(`/proc/${pid}/task/${tid}/children`, 'utf8'), '')
      .split(' ')
      .filter((child) => child.trim() !== '')
      .map(Number),
  );

/** Processes and threads may end during a read. */
export function orGone<Found>(look: () => Found, otherwise: Found = 0 as Found): Found {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

const nanoseconds = 1e9;

/** CPU seconds of a thread, in nanosecond resolution; Linux only. */
export const threadSeconds = (pid: number, tid: number): number =>
  orGone(
    () => Number(readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]) / nanoseconds,
  );

export function memoryMb(pid: number): number {
  if (process.platform !== 'linux') return Number(askPs('rss=', pid)) / 1024;
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes ?? 0) / 1024;
}

/** CPU seconds of ended children of this process; 0 except on Linux. */
export const childrenSeconds = (): number =>
  process.platform === 'linux' ? cpuOfStat('/proc/self/stat', childFields) : 0;

/** Fields of user time after the state; system time follows (proc(5): utime, cutime). */
const [ownFields, childFields] = [11, 13] as const;

function cpuOfStat(file: string, place: number = ownFields): number {
  const stat = readFileSync(file, 'utf8');
  // A process name can contain spaces, so count from its closing parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[place]) + Number(fields[place + 1])) / ticksPerSecond;
}

const askPs = (field: string, pid: number): string =>
  execFileSync('ps', ['-o', field, '-p', `${pid}`], { encoding: 'utf8' });

const parsePs = (time: string): number =>
  time
    .trim()
    .split(':')
    .reduce((seconds, part) => seconds * 60 + Number(part), 0);

/** Waits for the first output. @throws Error if the program ends or is silent */
export async function startProcess(args: readonly string[], env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawnNode(args, env);
  const ended = once(child, 'exit').then(([code]) => `ended with ${code}`);
  const late = sleep(startLimitMs, 'is not ready in time', { ref: false });
  const failure = Promise.race([ended, late]).then((outcome) => {
    throw new Error(`${args[0]} ${outcome}`);
  });
  await Promise.race([once(child.stdout as Readable, 'data'), failure]);
  return child;
}

const tether = `--import=${new URL('./tether.js', import.meta.url).href}`;

/** Detached: Ctrl-C reaches only the benchmark, which stops its processes in order. */
const spawnNode = (args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess =>
  spawn(process.execPath, [tether, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'], detached: true });

export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const killer = setTimeout(() => child.kill('SIGKILL'), stopLimitMs);
  child.kill('SIGTERM');
  child.kill('SIGCONT'); // a paused process cannot handle SIGTERM
  await once(child, 'exit');
  clearTimeout(killer);
}
