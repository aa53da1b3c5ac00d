/** The data folder: who owns it, its secrets, where its servers are, and its development key. */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import { identify, isAlive, lockDir } from '../dir-lock.js';
import { StartError } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';
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

/** Where the two servers are; `analystUrl` is null for a ClickHouse that is not ours. */
export type Endpoints = {
  redisUrl: string;
  clickhouseUrl: string;
  clickhouseCluster?: string | null | undefined;
  analystUrl: string | null;
};

export type DataDir = Awaited<ReturnType<typeof openDataDir>>;

/** A dead predecessor's servers end by themselves within 5 s. */
const predecessorMs = 10_000;
const pollMs = 50;

/**
 * Makes the folder when missing, takes it for this process and waits for the end of a dead predecessor's servers.
 * @throws StartError when another instance, or a server of a dead one, still uses the folder
 */
export async function openDataDir(path: string, waitMs = predecessorMs) {
  makeFolder(path);
  const lock = takeLock(path);
  const servers = new Map<string, Static<typeof processIdentity>>();
  try {
    await waitForServers(path, waitMs);
    return {
      path,
      /** Passwords of the embedded servers: made at the first start, the same ever after. */
      secrets: readSecrets(path),
      /** Notes a server's process, so that the next start can wait for its end. */
      recordServer(name: string, pid: number): void {
        const identity = identify(pid);
        if (identity !== null) servers.set(name, identity);
        writePrivate(serversFile(path), Object.fromEntries(servers));
      },
      /** Publishes the servers' addresses in endpoints.json, mode 600. */
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

/** A folder that was there keeps its mode: others may have been meant to see into it. */
export function warnOfReaders(path: string, logger: Logger): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) === 0) return;
  const quoted = `'${path.replaceAll("'", `'\\''`)}'`;
  logger.warn(`DATA_DIR is open to other users of this machine; type: chmod 700 ${quoted}`);
}

/** The published addresses, or null when there are none. They may be those of a service that died. */
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

/** Publishes the address of the API, for commands that name it to people. */
export const writeApiUrl = (path: string, url: string): void => writePrivate(apiFile(path), { url });
export const removeApiUrl = (path: string): void => rmSync(apiFile(path), { force: true });

/** The published address of the API, or null. It may be that of a service that died. */
export const readApiUrl = (path: string): string | null => readChecked(apiFile(path), storedApi)?.url ?? null;

/** Development keys have a file each: `api-key` that of a start, another one that of a tenant's demo. */
export const developmentKeyFile = (path: string): string => join(path, 'api-key');
export const demoKeyFile = (path: string, tenant: string): string =>
  join(path, tenant === 'demo' ? 'demo-key' : `demo-key-${tenant}`);

const demoPageFile = (path: string): string => join(path, 'demo.html');

/** Writes a page, readable by its owner only, that leads on to a link with a key. @returns its file */
export function writeDemoPage(path: string, link: string): string {
  const file = demoPageFile(path);
  rmSync(file, { force: true });
  const head = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${link}">`;
  writeFileSync(file, `${head}<title>Skilltrace</title><a href="${link}">Dashboard</a>\n`, { mode: 0o600 });
  return file;
}

/** Removes what holds the key of a tenant's demo. */
export function removeDemoFiles(path: string, tenant: string): void {
  for (const file of [demoKeyFile(path, tenant), demoPageFile(path)]) rmSync(file, { force: true });
}

/** The development key in a file, or null if none was made there. */
export function readDevelopmentKey(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/**
 * Makes the development key, readable by its owner only; of several processes at once the first one's counts.
 * @param revoked the key that is in the file, for the fresh one to replace; null where there is none
 */
export function makeDevelopmentKey(file: string, revoked: string | null): string {
  makeFolder(dirname(file));
  // Asked again, for another process may have replaced it meanwhile.
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

/** @returns null when there is no such file */
function readChecked<Schema extends TSchema>(file: string, schema: Schema): Static<Schema> | null {
  const content = readJson(file);
  if (content === null || Value.Check(schema, content)) return content;
  throw new StartError(`${file} is damaged; delete it when no instance runs`);
}
