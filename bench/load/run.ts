/** Puts loads on targets, by the generator that suits them. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Closers, StartError } from '../../src/lifecycle.js';
import { stopProcess } from '../processes.js';
import { here } from '../targets.js';
import type { LoadPlan, LoadResult } from './plan.js';
import { writePool } from './pool.js';
import { hole, prepareAll, type Traffic } from './traffic.js';
import { readWrk, wrkArguments, wrkScript } from './wrk.js';

export interface LoadRunner {
  /** Prepares requests once. @returns the folder, for plans */
  pool(traffic: Traffic, key: string): string;
  /** @throws where a request was not answered with 200 */
  run(plan: LoadPlan, traffic: Traffic): Promise<LoadResult>;
}

/** @param useWrk for the loops that it can drive */
export function createLoadRunner(folder: string, useWrk: boolean, closers: Closers): LoadRunner {
  const pools = new Map<string, string>();
  const script = join(folder, 'wrk.lua');
  if (useWrk) writeFileSync(script, wrkScript(hole));
  const pool = (traffic: Traffic, key: string): string => {
    const name = JSON.stringify({ ...traffic, key });
    const made = pools.get(name) ?? join(folder, `pool-${pools.size}`);
    if (!pools.has(name)) writePool(made, prepareAll(traffic, key));
    pools.set(name, made);
    return made;
  };
  const output = async (command: string, args: readonly string[]): Promise<string> => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    closers.add('load generator', () => stopProcess(child));
    return outputOf(child);
  };
  const run = async (plan: LoadPlan, traffic: Traffic): Promise<LoadResult> => {
    if (useWrk && suitsWrk(plan, traffic)) {
      const answers = traffic.kind === 'answers' ? 1 : 0;
      return readWrk(await output('wrk', wrkArguments(plan, script)), plan, answers);
    }
    return JSON.parse(await output(process.execPath, [here('./load.js'), JSON.stringify(plan)]));
  };
  return { pool, run };
}

/** wrk has no open loop, takes whole seconds, and must know how many answers it has been given. */
const suitsWrk = ({ rate, seconds, ownGenerator }: LoadPlan, { kind, batch }: Traffic): boolean =>
  rate === null && ownGenerator !== true && batch === 1 && kind !== 'mixed' && Number.isInteger(seconds);

async function outputOf(child: ChildProcessByStdio<null, Readable, Readable>): Promise<string> {
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  if (code !== 0) throw new StartError(`the load generator ended with ${code}: ${errors}`);
  return out;
}
