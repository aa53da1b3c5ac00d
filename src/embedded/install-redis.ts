import { spawn, spawnSync } from 'node:child_process';
import { describeConnectionError } from '../connection-problem.js';
import { StartError } from '../lifecycle.js';
import { hasCode } from './private-file.js';

/** For XRANGE with exclusive bounds, XTRIM MINID and BullMQ. */
const oldest = [6, 2] as const;
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
export async function ensureRedisServer(say: (line: string) => void, signal?: AbortSignal): Promise<void> {
  const found = await versionOnPath();
  if (found === null) await install(say, signal);
  const version = found ?? (await versionOnPath());
  if (version === null) throw new StartError('redis-server was installed, but is not on PATH');
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    throw new StartError(
      `redis-server ${version} is too old; install ${oldest.join('.')} or newer (https://redis.io/downloads) or set REDIS_URL`,
    );
  }
}

/** Null: not on PATH. */
async function versionOnPath(): Promise<string | null> {
  try {
    const { output } = await run(['redis-server', '--version']);
    return /v=([\d.]+)/.exec(output)?.[1] ?? '0';
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EACCES')) return null;
    throw new StartError(`redis-server cannot be run: ${describeConnectionError(error).text}`, {
      cause: error,
    });
  }
}

async function install(say: (line: string) => void, signal?: AbortSignal): Promise<void> {
  const recipe = recipes.find(({ tool }) => works(tool, '--version'));
  if (recipe === undefined)
    throw new StartError('redis-server is not installed; install Redis 6.2 or newer, or set REDIS_URL');
  const { tool, prepare, advice } = recipe;
  const isAllowed = tool === 'brew' || process.getuid?.() === 0;
  if (!isAllowed && !works('sudo', '-n', 'true'))
    throw new StartError(`redis-server is not installed; type: ${advice}`);
  say(`redis-server is missing: installing it with ${tool}`);
  const quietly = [...(isAllowed ? [] : ['sudo', '-n']), 'env', 'DEBIAN_FRONTEND=noninteractive'];
  // The installation may work after a failed update.
  for (const command of prepare) await run([...quietly, ...command.split(' ')], signal);
  let last = { code: 1, output: '' };
  for (const command of recipe.install) {
    last = await run([...quietly, ...command.split(' ')], signal);
    if (last.code === 0) return;
  }
  const reason = last.output.trim().split('\n').slice(-maxOutputLines).join('\n');
  throw new StartError(`redis-server could not be installed; type: ${advice}\n${reason}`);
}

const works = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

function run([command = '', ...args]: string[], signal?: AbortSignal) {
  return new Promise<{ code: number; output: string }>((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...(signal && { signal }) });
    let output = '';
    const keep = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-10_000);
    };
    child.once('error', reject);
    // Null without file descriptors.
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    child.once('close', (code) => resolve({ code: code ?? 1, output }));
  });
}
