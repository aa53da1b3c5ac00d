import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

export const canPinCores = (): boolean =>
  process.platform === 'linux' && spawnSync('taskset', ['--version']).status === 0;

export function listAllowedCores(): number[] {
  if (process.platform !== 'linux') return cpus().map((_, i) => i);
  const list = /^Cpus_allowed_list:\s+(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/**
 * Pins this process and its new children during `work`.
 * @param cores null: no change
 */
export async function withCores<Result>(cores: string | null, work: () => Promise<Result>): Promise<Result> {
  if (cores === null) return work();
  const before = listAllowedCores().join();
  pinProcess(cores);
  try {
    return await work();
  } finally {
    pinProcess(before);
  }
}

function pinProcess(cores: string): void {
  const { status, stderr } = spawnSync('taskset', ['-a', '-c', '-p', cores, `${process.pid}`]);
  if (status !== 0) throw new Error(`taskset: ${stderr}`);
}
