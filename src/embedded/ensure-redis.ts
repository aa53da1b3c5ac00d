import { spawn, spawnSync } from 'node:child_process';
import { describeConnectionError } from '../connection-problem.js';
import { StartError } from '../lifecycle.js';
import { hasErrorCode } from './private-file.js';

/** For XRANGE with exclusive bounds, XTRIM MINID and BullMQ. */
const minVersion = [6, 2] as const;
const maxOutputLines = 5;

const apt = 'apt-get -y -o DPkg::Lock::Timeout=120';
const recipes = [
  {
    tool: 'apt-get',
    prepare: [`${apt} update`],
    install: [`${apt} install --no-install-recommends redis-server`],
    advice: 'sudo apt-get update && sudo apt-get install redis-server',
  },
  {
    tool: 'dnf',
    prepare: [],
    // Newer Fedora and RHEL have Valkey instead.
    install: ['dnf install -y redis', 'dnf install -y valkey-compat-redis'],
    advice: 'sudo dnf install redis',
  },
  { tool: 'brew', prepare: [], install: ['brew install redis'], advice: 'brew install redis' },
];

/**
 * Installs `redis-server` if it is missing and no password is needed.
 * @param signal ends an installation @throws StartError with the command to type
 */
export async function ensureRedisServer(report: (line: string) => void, signal?: AbortSignal): Promise<void> {
  const found = await detectVersion();
  if (found === null) await installRedis(report, signal);
  const version = found ?? (await detectVersion());
  if (version === null)
    throw new StartError(
      'redis-server was installed, but it is not on PATH; add its folder to PATH, or set REDIS_URL',
    );
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < minVersion[0] || (major === minVersion[0] && minor < minVersion[1])) {
    throw new StartError(
      `redis-server ${version} is too old; install ${minVersion.join('.')} or newer (https://redis.io/downloads) or set REDIS_URL`,
    );
  }
}

/** Null: not on PATH. */
async function detectVersion(): Promise<string | null> {
  try {
    const { output } = await run(['redis-server', '--version']);
    return /v=([\d.]+)/.exec(output)?.[1] ?? '0';
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT', 'EACCES')) return null;
    throw new StartError(`redis-server cannot be run: ${describeConnectionError(error).text}`, {
      cause: error,
    });
  }
}

async function installRedis(report: (line: string) => void, signal?: AbortSignal): Promise<void> {
  const recipe = recipes.find(({ tool }) => succeeds(tool, '--version'));
  if (recipe === undefined)
    throw new StartError('redis-server is not installed; install Redis 6.2 or newer, or set REDIS_URL');
  const { tool, prepare, advice } = recipe;
  const isAllowed = tool === 'brew' || process.getuid?.() === 0;
  if (!isAllowed && !succeeds('sudo', '-n', 'true'))
    throw new StartError(`redis-server is not installed; run: ${advice}`);
  report(`redis-server is not installed; installing it with ${tool}`);
  const prefix = [...(isAllowed ? [] : ['sudo', '-n']), 'env', 'DEBIAN_FRONTEND=noninteractive'];
  // The installation may work after a failed update.
  for (const command of prepare) await run([...prefix, ...command.split(' ')], signal);
  let last = { code: 1, output: '' };
  for (const command of recipe.install) {
    last = await run([...prefix, ...command.split(' ')], signal);
    if (last.code === 0) return;
  }
  const reason = last.output.trim().split('\n').slice(-maxOutputLines).join('\n');
  throw new StartError(`redis-server could not be installed; run: ${advice}\n${reason}`);
}

const succeeds = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

function run([command = '', ...args]: string[], signal?: AbortSignal) {
  return new Promise<{ code: number; output: string }>((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...(signal && { signal }) });
    let output = '';
    const append = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-10_000);
    };
    child.once('error', reject);
    // Null without file descriptors.
    child.stdout?.on('data', append);
    child.stderr?.on('data', append);
    child.once('close', (code) => resolve({ code: code ?? 1, output }));
  });
}
