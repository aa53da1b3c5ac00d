import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { defaultAnalystLimits } from '../../../src/contracts/settings/analyst-limits.js';
import type { ChildOptions } from '../../../src/embedded/start-clickhouse.js';
import { reversed, type Scoped } from '../scope.js';
import { tempDir } from '../temp.js';
import { exitOf } from './processes.js';

const entry = fileURLToPath(new URL('../../../src/embedded/clickhouse/server.js', import.meta.url));

export const serviceAccount = { name: 'skilltrace', password: "se'cret:1" };
export const analystAccount = { name: 'analyst', password: 'look-only' };
type Account = typeof serviceAccount;

export const headersOf = ({ name, password }: Account): Record<string, string> => ({
  'X-ClickHouse-User': name,
  'X-ClickHouse-Key': password,
});

/** Starts the embedded ClickHouse without waiting until it listens. */
export function spawnChild(dataDir: string, change: Partial<ChildOptions> = {}): ChildProcess {
  const env = { ...process.env, TZ: 'America/New_York' };
  const child = spawn(process.execPath, [entry], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], env });
  const options: ChildOptions = {
    dataDir,
    port: 0,
    database: 'skilltrace',
    accounts: [
      { ...serviceAccount, readonly: false },
      { ...analystAccount, readonly: true },
    ],
    readableTables: ['skilltrace.*'],
    analystLimits: defaultAnalystLimits,
    overruns: [],
    ...change,
  };
  child.send(options, () => undefined);
  return child;
}

export type ClickHouseChild = Awaited<ReturnType<typeof startClickHouse>>;

/** Starts the embedded ClickHouse on a folder, by default a temporary one. */
export async function startClickHouse(t: Scoped, dir?: string, change: Partial<ChildOptions> = {}) {
  const scope = reversed(t);
  const dataDir = dir ?? join(await tempDir(scope), 'data');
  const child = spawnChild(dataDir, change);
  scope.after(async () => {
    child.kill('SIGKILL');
    await exitOf(child);
  });
  const [message] = (await once(child, 'message')) as [{ port: number }];
  const url = `http://127.0.0.1:${message.port}`;
  return {
    process: child,
    dataDir,
    url,
    client: (account: Account = serviceAccount): ClickHouseClient => {
      const { name: username, password } = account;
      const log = { level: ClickHouseLogLevel.OFF };
      const client = createClient({ url, username, password, database: 'skilltrace', log });
      t.after(() => client.close());
      return client;
    },
    /** A request as the service, unless `init` has other headers. */
    fetch: (path: string, init: RequestInit = {}): Promise<Response> =>
      fetch(`${url}${path}`, { headers: headersOf(serviceAccount), ...init }),
    /** Closes the IPC channel. @returns the exit code */
    stop: (): Promise<number | null> => {
      child.disconnect();
      return exitOf(child);
    },
  };
}
