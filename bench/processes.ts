/** Child processes of a benchmark, and the CPU time that they use. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second (USER_HZ). */
const ticksPerSecond = 100;

/** CPU seconds that a process has used, all its threads together. */
export function cpuSeconds(pid: number): number {
  if (process.platform !== 'linux')
    return parsePs(execFileSync('ps', ['-o', 'time=', '-p', `${pid}`], { encoding: 'utf8' }));
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name may hold spaces; the fields after it count from the closing parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

const parsePs = (time: string): number =>
  time
    .trim()
    .split(':')
    .reduce((seconds, part) => seconds * 60 + Number(part), 0);

/** Starts a program and waits for its first line on standard output. */
export async function startProcess(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ child: ChildProcess; line: string }> {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`${args[0]} ended with ${code} before it was ready`);
    }),
  ]);
  return { child, line: String(line).trim() };
}

export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** Runs a program to its end and returns what it printed. */
export async function runProcess(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}`);
  return output;
}
