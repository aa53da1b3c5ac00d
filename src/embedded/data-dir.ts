import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import { identifyProcess, isAlive, lockDir } from '../dir-lock.js';
import { StartError } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import { hasCode, makeFolder, readJson, writePrivate } from './private-file.js';

const storedEndpoints = Type.Object({
  redis_url: Type.String({ minLength: 1 }),
  clickhouse_url: Type.String({ minLength: 1 }),
  clickhouse_cluster: Type.Optional(Type.String()),
  analyst_url: Type.Union([Type.String(), Type.Null()]),
});
const storedApi = Type.Object({ url: Type.String({ minLength: 1 }) });
const secret = Type.String({ minLength: 1 });
const storedSecrets = Type.Object({ redis: secret, clickhouse: secret, analyst: secret });
const processIdentity = Type.Object({ pid: Type.Integer(), startedAt: Type.String() });
const storedServers = Type.Record(Type.String(), processIdentity);

/** `analystUrl`: null for an external ClickHouse. */
export type Endpoints = {
  redisUrl: string;
  clickhouseUrl: string;
  clickhouseCluster?: string | null | undefined;
  analystUrl: string | null;
};

export type DataDir = Awaited<ReturnType<typeof openDataDir>>;

/** Servers of a dead instance end within 5 s. */
const predecessorMs = 10_000;
const pollMs = 50;

/** Locks the folder, and waits for servers of a dead instance. @throws StartError if the folder is in use */
export async function openDataDir(path: string, waitMs = predecessorMs) {
  makeFolder(path);
  const lock = takeLock(path);
  const servers = new Map<string, Static<typeof processIdentity>>();
  try {
    await waitForServers(path, waitMs);
    return {
      path,
      secrets: readSecrets(path),
      /** The next start waits for the end of this server. */
      recordServer(name: string, pid: number): void {
        const identity = identifyProcess(pid);
        if (identity !== null) servers.set(name, identity);
        writePrivate(serversFile(path), Object.fromEntries(servers));
      },
      writeEndpoints: ({ redisUrl, clickhouseUrl, clickhouseCluster, analystUrl }: Endpoints): void =>
        writePrivate(endpointsFile(path), {
          redis_url: redisUrl,
          clickhouse_url: clickhouseUrl,
          ...(clickhouseCluster && { clickhouse_cluster: clickhouseCluster }),
          analyst_url: analystUrl,
        }),
      removeEndpoints: (): void => rmSync(endpointsFile(path), { force: true }),
      release: lock.release,
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

export function warnOfReaders(path: string, logger: Logger): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) === 0) return;
  const quoted = `'${path.replaceAll("'", `'\\''`)}'`;
  logger.warn(`DATA_DIR is open to other users of this machine; type: chmod 700 ${quoted}`);
}

/** The service may have died. */
export function readStoredEndpoints(path: string): Endpoints | null {
  const stored = readChecked(endpointsFile(path), storedEndpoints);
  if (stored === null) return null;
  return {
    redisUrl: stored.redis_url,
    clickhouseUrl: stored.clickhouse_url,
    ...(stored.clickhouse_cluster && { clickhouseCluster: stored.clickhouse_cluster }),
    analystUrl: stored.analyst_url,
  };
}

export const writeApiUrl = (path: string, url: string): void => writePrivate(apiFile(path), { url });
export const removeApiUrl = (path: string): void => rmSync(apiFile(path), { force: true });

/** The service may have died. */
export const readApiUrl = (path: string): string | null => readChecked(apiFile(path), storedApi)?.url ?? null;

export const developmentKeyFile = (path: string): string => join(path, 'api-key');
export const demoKeyFile = (path: string, tenant: string): string =>
  join(path, tenant === 'demo' ? 'demo-key' : `demo-key-${tenant}`);

const demoPageFile = (path: string): string => join(path, 'demo.html');

/** Readable by the owner only. The page redirects to a link with a key. */
export function writeDemoPage(path: string, link: string): string {
  const file = demoPageFile(path);
  rmSync(file, { force: true });
  const head = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${link}">`;
  writeFileSync(file, `${head}<title>Skilltrace</title><a href="${link}">Dashboard</a>\n`, { mode: 0o600 });
  return file;
}

export function removeDemoFiles(path: string, tenant: string): void {
  for (const file of [demoKeyFile(path, tenant), demoPageFile(path)]) rmSync(file, { force: true });
}

export function readDevelopmentKey(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/**
 * Readable by the owner only. Of concurrent processes, the first one's key counts. @param revoked key to
 * replace, or null
 */
export function makeDevelopmentKey(file: string, revoked: string | null): string {
  makeFolder(dirname(file));
  if (revoked !== null && readDevelopmentKey(file) === revoked) rmSync(file);
  const key = `dev-${randomBytes(18).toString('base64url')}`;
  try {
    writeFileSync(file, `${key}\n`, { mode: 0o600, flag: 'wx' });
    return key;
  } catch (error) {
    const made = hasCode(error, 'EEXIST') ? readDevelopmentKey(file) : null;
    if (made === null) throw error;
    return made;
  }
}

const endpointsFile = (path: string): string => join(path, 'endpoints.json');
const apiFile = (path: string): string => join(path, 'api.json');
const serversFile = (path: string): string => join(path, 'servers.json');

const inUse = (path: string, by: string): StartError =>
  new StartError(`DATA_DIR: ${JSON.stringify(path)} is in use ${by}; stop it or choose another folder`);

function takeLock(path: string): { release(): void } {
  let lock: ReturnType<typeof lockDir>;
  try {
    lock = lockDir(path);
  } catch (error) {
    throw new StartError(`DATA_DIR: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
  if ('heldBy' in lock) throw inUse(path, `by another instance (process ${lock.heldBy.pid})`);
  return lock;
}

async function waitForServers(path: string, waitMs: number): Promise<void> {
  const recorded = Object.entries(readChecked(serversFile(path), storedServers) ?? {});
  const deadline = performance.now() + waitMs;
  for (const [name, server] of recorded)
    while (isAlive(server)) {
      if (performance.now() > deadline)
        throw inUse(path, `by the ${name} of another instance (process ${server.pid})`);
      await sleep(pollMs);
    }
}

function readSecrets(path: string): Static<typeof storedSecrets> {
  const file = join(path, 'secrets.json');
  const known = readChecked(file, storedSecrets);
  if (known !== null) return known;
  const random = (): string => randomBytes(24).toString('hex');
  const fresh = { redis: random(), clickhouse: random(), analyst: random() };
  writePrivate(file, fresh);
  return fresh;
}

function readChecked<Schema extends TSchema>(file: string, schema: Schema): Static<Schema> | null {
  const content = readJson(file);
  if (content === null || Value.Check(schema, content)) return content;
  throw new StartError(`${file} is damaged; delete it when no instance runs`);
}
