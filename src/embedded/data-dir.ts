import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import { identifyProcess, isAlive, lockDir } from '../dir-lock.js';
import { StartError } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import { ensureFolder, hasErrorCode, readJson, writePrivateJson } from './private-file.js';

const endpointsSchema = Type.Object({
  redis_url: Type.String({ minLength: 1 }),
  clickhouse_url: Type.String({ minLength: 1 }),
  clickhouse_cluster: Type.Optional(Type.String()),
  analyst_url: Type.Union([Type.String(), Type.Null()]),
});
const apiSchema = Type.Object({ url: Type.String({ minLength: 1 }) });
const secretSchema = Type.String({ minLength: 1 });
const secretsSchema = Type.Object({ redis: secretSchema, clickhouse: secretSchema, analyst: secretSchema });
const identitySchema = Type.Object({ pid: Type.Integer(), startedAt: Type.String() });
const serversSchema = Type.Record(Type.String(), identitySchema);

/** `analystUrl`: null for an external ClickHouse. */
export type Endpoints = {
  redisUrl: string;
  clickhouseUrl: string;
  clickhouseCluster?: string | null | undefined;
  analystUrl: string | null;
};

export type DataDir = Awaited<ReturnType<typeof openDataDir>>;

/** Servers of a dead instance end within 5 s. */
const predecessorTimeoutMs = 10_000;
const pollMs = 50;

/** Locks the folder, and waits for servers of a dead instance. @throws StartError if the folder is in use */
export async function openDataDir(path: string, waitMs = predecessorTimeoutMs) {
  ensureFolder(path);
  const lock = acquireLock(path);
  const servers = new Map<string, Static<typeof identitySchema>>();
  try {
    await waitForServers(path, waitMs);
    return {
      path,
      secrets: readSecrets(path),
      /** The next start waits for the end of this server. */
      recordServer(name: string, pid: number): void {
        const identity = identifyProcess(pid);
        if (identity !== null) servers.set(name, identity);
        writePrivateJson(serversFile(path), Object.fromEntries(servers));
      },
      writeEndpoints: ({ redisUrl, clickhouseUrl, clickhouseCluster, analystUrl }: Endpoints): void =>
        writePrivateJson(endpointsFile(path), {
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

export function warnIfReadable(path: string, logger: Logger): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) === 0) return;
  const quoted = `'${path.replaceAll("'", `'\\''`)}'`;
  logger.warn(`Other users of this machine can access DATA_DIR; run: chmod 700 ${quoted}`);
}

/** The service may have died. */
export function readStoredEndpoints(path: string): Endpoints | null {
  const stored = readValidated(endpointsFile(path), endpointsSchema);
  if (stored === null) return null;
  return {
    redisUrl: stored.redis_url,
    clickhouseUrl: stored.clickhouse_url,
    ...(stored.clickhouse_cluster && { clickhouseCluster: stored.clickhouse_cluster }),
    analystUrl: stored.analyst_url,
  };
}

export const writeApiUrl = (path: string, url: string): void => writePrivateJson(apiFile(path), { url });
export const removeApiUrl = (path: string): void => rmSync(apiFile(path), { force: true });

/** The service may have died. */
export const readApiUrl = (path: string): string | null =>
  readValidated(apiFile(path), apiSchema)?.url ?? null;

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
    if (hasErrorCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/**
 * Readable by the owner only. Of concurrent processes, the first one's key counts. @param revoked key to
 * replace, or null
 */
export function createDevelopmentKey(file: string, revoked: string | null): string {
  ensureFolder(dirname(file));
  if (revoked !== null && readDevelopmentKey(file) === revoked) rmSync(file);
  const key = `dev-${randomBytes(18).toString('base64url')}`;
  try {
    writeFileSync(file, `${key}\n`, { mode: 0o600, flag: 'wx' });
    return key;
  } catch (error) {
    const existingKey = hasErrorCode(error, 'EEXIST') ? readDevelopmentKey(file) : null;
    if (existingKey === null) throw error;
    return existingKey;
  }
}

const endpointsFile = (path: string): string => join(path, 'endpoints.json');
const apiFile = (path: string): string => join(path, 'api.json');
const serversFile = (path: string): string => join(path, 'servers.json');

const createInUseError = (path: string, user: string): StartError =>
  new StartError(
    `DATA_DIR: ${JSON.stringify(path)} is in use ${user}; stop that process or choose another folder`,
  );

function acquireLock(path: string): { release(): void } {
  let lock: ReturnType<typeof lockDir>;
  try {
    lock = lockDir(path);
  } catch (error) {
    throw new StartError(`DATA_DIR: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
  if ('heldBy' in lock) throw createInUseError(path, `by another instance (process ${lock.heldBy.pid})`);
  return lock;
}

async function waitForServers(path: string, waitMs: number): Promise<void> {
  const recorded = Object.entries(readValidated(serversFile(path), serversSchema) ?? {});
  const deadline = performance.now() + waitMs;
  for (const [name, server] of recorded)
    while (isAlive(server)) {
      if (performance.now() > deadline)
        throw createInUseError(path, `by the ${name} of another instance (process ${server.pid})`);
      await sleep(pollMs);
    }
}

function readSecrets(path: string): Static<typeof secretsSchema> {
  const file = join(path, 'secrets.json');
  const stored = readValidated(file, secretsSchema);
  if (stored !== null) return stored;
  const generateSecret = (): string => randomBytes(24).toString('hex');
  const generated = { redis: generateSecret(), clickhouse: generateSecret(), analyst: generateSecret() };
  writePrivateJson(file, generated);
  return generated;
}

function readValidated<Schema extends TSchema>(file: string, schema: Schema): Static<Schema> | null {
  const content = readJson(file);
  if (content === null || Value.Check(schema, content)) return content;
  throw new StartError(`${file} has invalid content; stop all instances that use it, then delete it`);
}
