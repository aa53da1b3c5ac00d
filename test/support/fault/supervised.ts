/** Processes of the service, started as a user would start them, and started again whenever they end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type SupervisedServer, supervise } from '../../../src/embedded/supervisor.js';
import { createLogger } from '../../../src/logger.js';
import type { Scoped } from '../servers/service.js';
import { environment, serviceProgram } from '../servers/service-process.js';

/** Ends them when the test was killed. */
const tether = new URL('../../../bench/targets/tether.js', import.meta.url).href;
const sabotage = new URL('./sabotage.js', import.meta.url).href;
const stopMs = 12_000;

export interface ServiceProcess {
  pid(): number;
  stop(): Promise<void>;
}

export interface ProcessOptions {
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  /** Folder of the orders to its worker threads. */
  readonly orders: string;
}

/** Resolves when it serves; ends with the test. */
export async function startServiceProcess(
  t: Scoped,
  { name, env, orders }: ProcessOptions,
): Promise<ServiceProcess> {
  const preloads = `--import=${tether} --import=${sabotage}?orders=${encodeURIComponent(orders)}`;
  const supervised: SupervisedServer = supervise({
    name,
    // What dies here was killed by the test.
    logger: createLogger('silent', 'test'),
    maxDelayMs: 400,
    spawn: () =>
      spawn(process.execPath, ['-e', serviceProgram], {
        detached: true,
        env: {
          ...environment(),
          LOG_LEVEL: 'fatal',
          NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${preloads}`,
          ...env,
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    ready: async (child, signal) => {
      const out = child.stdout as NonNullable<typeof child.stdout>;
      await once(out, 'data', { signal });
      out.resume();
    },
  });
  const stop = (): Promise<void> => supervised.stop(stopMs);
  t.after(stop);
  await supervised.ready;
  return { pid: () => supervised.pid() ?? 0, stop };
}
