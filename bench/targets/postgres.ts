/** PostgreSQL from the system's binaries, on a loopback port. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findFreePort } from '../../src/embedded/free-port.js';
import { type Closers, StartError } from '../../src/lifecycle.js';
import { readOrDefault } from './processes.js';
import { waitUntilDone } from './wait.js';

export const missingPostgres =
  'PostgreSQL is not installed. Install it to measure the PostgreSQL peers: `apt install postgresql`, `dnf install postgresql-server` or `brew install postgresql`';

const debianFolder = '/usr/lib/postgresql';
const startMs = 30_000;

/** @returns the folder of `initdb` and `postgres`, preferring the newest of Debian's versions; null if not installed */
export function findPostgres(): string | null {
  const versions = readOrDefault(() => readdirSync(debianFolder), []).sort((a, b) => Number(b) - Number(a));
  const print = (command: string): string =>
    spawnSync('sh', ['-c', command], { encoding: 'utf8' }).stdout.trim();
  const folders = [
    ...versions.map((version) => join(debianFolder, version, 'bin')),
    print('pg_config --bindir'),
    dirname(print('command -v initdb')),
  ];
  const isComplete = (folder: string): boolean =>
    ['initdb', 'postgres'].every((name) => existsSync(join(folder, name)));
  return folders.find(isComplete) ?? null;
}

/** Returns when PostgreSQL accepts connections. @throws StartError if it is missing or does not start */
export async function startPostgres(folder: string, synchronousCommit: 'on' | 'off', closers: Closers) {
  const binaries = findPostgres();
  if (binaries === null) throw new StartError(missingPostgres);
  const home = join(folder, 'postgres');
  const password = randomUUID();
  const owner = prepareHome(home, password);
  const data = join(home, 'data');
  const login = '-U bench -A scram-sha-256 --locale=C -N'.split(' ');
  const options = [`--pwfile=${passwordFile(home)}`, ...login];
  execFileSync(join(binaries, 'initdb'), ['-D', data, ...options], { ...owner, cwd: home });
  const port = await findFreePort();
  const settings = buildSettings(synchronousCommit);
  startGuarded([join(binaries, 'postgres'), '-D', data, '-p', `${port}`, ...settings], home, owner, closers);
  const postgresUrl = `postgres://bench:${password}@127.0.0.1:${port}/postgres`;
  return { postgresUrl, pid: await waitForPid(data) };
}

const buildSettings = (synchronousCommit: string): string[] =>
  Object.entries({
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    shared_buffers: '256MB',
    synchronous_commit: synchronousCommit,
    log_min_messages: 'fatal',
  }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);

/** The first line of the file is the process id, the eighth the state. */
async function waitForPid(data: string): Promise<number> {
  const readLines = (): string[] =>
    readOrDefault(() => readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n'), []);
  const findMissing = async () => (readLines()[7]?.trim() === 'ready' ? null : 'PostgreSQL did not start');
  await waitUntilDone(findMissing, { limitMs: startMs });
  return Number(readLines()[0]);
}

type Owner = ReturnType<typeof findOwner>;
const passwordFile = (home: string): string => join(home, 'password');

function prepareHome(home: string, password: string): Owner {
  const owner = findOwner();
  mkdirSync(home, { recursive: true, mode: 0o700 });
  writeFileSync(passwordFile(home), password, { mode: 0o600 });
  for (const path of [home, passwordFile(home)]) chownSync(path, owner.uid, owner.gid);
  if (isRoot()) openParents(home);
  return owner;
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** PostgreSQL refuses to run as root, and its packages create the user `postgres`. */
function findOwner() {
  const user = isRoot() ? ['postgres'] : [];
  const readId = (option: string) => Number(execFileSync('id', [option, ...user], { encoding: 'utf8' }));
  return { uid: readId('-u'), gid: readId('-g') };
}

/** Lets other users traverse the parents, up to the temporary folder of the system. */
function openParents(home: string): void {
  const top = realpathSync(tmpdir());
  for (let path = dirname(realpathSync(home)); path.startsWith(`${top}/`); path = dirname(path))
    chmodSync(path, 0o711);
}

/** `cat` ends with this process, also after SIGKILL. SIGQUIT shuts PostgreSQL down without a checkpoint. */
const guardScript = '"$@" & cat; kill -QUIT $!; wait $!';

function startGuarded(command: readonly string[], cwd: string, owner: Owner, closers: Closers): void {
  const stdio = ['pipe', 'ignore', 'inherit'] as const;
  const guard = spawn('sh', ['-c', guardScript, 'sh', ...command], {
    ...owner,
    cwd,
    stdio: [...stdio],
    detached: true,
  });
  const ended = once(guard, 'exit');
  closers.add('PostgreSQL', () => {
    guard.stdin?.end();
    return ended;
  });
}
