import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { defaultAnalystLimits } from '../../../src/contracts/settings/analyst-limits.js';

const entry = fileURLToPath(new URL('../../../src/embedded/clickhouse/server.js', import.meta.url));

export const serviceAccount = { name: 'skilltrace', password: "se'cret:1" };
export const analystAccount = { name: 'analyst', password: 'look-only' };

/** A running embedded ClickHouse server of a test. */
export interface ClickHouseChild {
  readonly process: ChildProcess;
  readonly port: number;
  readonly url: string;
  /** Everything it wrote on stderr so far. */
  errors(): string;
  /** A client of the service, or of the analyst; close it. */
  client(account?: { name: string; password: string }): ClickHouseClient;
  /** A plain request as the service (or with the given headers). */
  fetch(path: string, init?: RequestInit & { headers?: Record<string, string> }): Promise<Response>;
  /** Closes the channel, waits; the exit code. */
  stop(): Promise<number | null>;
}

export async function temporaryFolder(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'skilltrace-clickhouse-'));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 3 }) };
}

/** Starts a child without waiting for its answer; `port` as in the protocol. */
export function spawnChild(dataDir: string, port = 0): ChildProcess {
  const env = { ...process.env, TZ: 'America/New_York' };
  const child = spawn(process.execPath, [entry], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], env });
  const accounts = [
    { ...serviceAccount, readonly: false },
    { ...analystAccount, readonly: true },
  ];
  const options = {
    dataDir,
    port,
    database: 'skilltrace',
    accounts,
    readableTables: ['skilltrace.*'],
    analystLimits: defaultAnalystLimits,
    overruns: [],
  };
  child.send(options, () => undefined);
  return child;
}

/** Exit code of a child, within 20 s. */
export async function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  await once(child, 'exit', { signal: AbortSignal.timeout(20_000) });
  return child.exitCode;
}

async function portOf(child: ChildProcess): Promise<number> {
  const [message] = await once(child, 'message', { signal: AbortSignal.timeout(30_000) });
  return (message as { port: number }).port;
}

/** Starts a child on this folder and waits until it listens. */
export async function startClickHouse(dataDir: string): Promise<ClickHouseChild> {
  const child = spawnChild(dataDir);
  let stderr = '';
  child.stderr?.on('data', (text: Buffer) => {
    stderr += text.toString('utf8');
  });
  const port = await portOf(child);
  const url = `http://127.0.0.1:${port}`;
  const own = { 'X-ClickHouse-User': serviceAccount.name, 'X-ClickHouse-Key': serviceAccount.password };
  return {
    process: child,
    port,
    url,
    errors: () => stderr,
    client: (account = serviceAccount) =>
      createClient({
        url,
        username: account.name,
        password: account.password,
        database: 'skilltrace',
        log: { level: ClickHouseLogLevel.OFF },
      }),
    fetch: (path, init = {}) => fetch(`${url}${path}`, { ...init, headers: init.headers ?? own }),
    stop: async () => {
      child.disconnect();
      return exitOf(child);
    },
  };
}
