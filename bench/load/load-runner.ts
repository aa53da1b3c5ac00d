import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Closers, StartError } from '../../src/lifecycle.js';
import { stopProcess } from '../targets/processes.js';
import { resolveBenchPath } from '../targets/targets.js';
import type { LoadPlan, LoadResult } from './plan.js';
import { writePool } from './request-pool.js';
import { prepareRequests, type Traffic } from './traffic.js';

export type LoadRunner = ReturnType<typeof createLoadRunner>;

export function createLoadRunner(folder: string, closers: Closers) {
  const pools = new Map<string, string>();
  /** @returns folder of the prepared requests */
  const pool = (traffic: Traffic, key: string): string => {
    const name = JSON.stringify({ ...traffic, key });
    const made = pools.get(name) ?? join(folder, `pool-${pools.size}`);
    if (!pools.has(name)) writePool(made, prepareRequests(traffic, key));
    pools.set(name, made);
    return made;
  };
  /** @throws StartError */
  const run = async (plan: LoadPlan): Promise<LoadResult> => {
    const args = [resolveBenchPath('./load/main.js'), JSON.stringify(plan)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    closers.add('load generator', () => stopProcess(child));
    return JSON.parse(await readOutput(child));
  };
  return { pool, run };
}

async function readOutput(child: ChildProcessByStdio<null, Readable, Readable>): Promise<string> {
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  if (code !== 0) throw new StartError(`the load generator ended with ${code}: ${errors}`);
  return out;
}
