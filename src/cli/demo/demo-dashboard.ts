import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buildDashboardLink, buildLocalUrl } from '../../app/startup/dashboard-link.js';
import { prepareDemoKey } from '../../app/startup/prepare-keys.js';
import { readApiUrl, writeDemoPage } from '../../embedded/data-dir.js';
import type { RedisClient } from '../../store/redis/connection/client.js';
import type { CommandContext } from '../support/command.js';

export type DemoDashboard = Awaited<ReturnType<typeof findDashboard>>;

/** `link` contains a key; null if the service would reject it. `isServing`: the service accepts the key now. */
export async function findDashboard({ config }: CommandContext, redis: RedisClient, tenant: string) {
  const address = readApiUrl(config.dataDir) ?? buildLocalUrl(config.host, config.port);
  const key = await prepareDemoKey(config, redis, tenant);
  const link = key === null ? null : buildDashboardLink(address, key);
  return {
    tenant,
    page: `${address}/dashboard`,
    link,
    isServing: key !== null && (await acceptsKey(address, key)),
  };
}

const requestTimeoutMs = 3000;

/** The published address may be stale after a kill, or in use by another service. */
async function acceptsKey(address: string, key: string): Promise<boolean> {
  const options = { headers: { 'X-API-Key': key }, signal: AbortSignal.timeout(requestTimeoutMs) };
  const response = await fetch(`${address}/api/v1/skills?limit=1`, options).catch(() => null);
  return response?.ok === true;
}

export function formatDashboard({ tenant, page, link, isServing }: DemoDashboard): string {
  if (link === null)
    return `Dashboard: ${page}. HOST is not loopback, so create a key: npm run keys -- create --tenant ${tenant}`;
  return isServing ? `Dashboard: ${link}` : `Dashboard: run npm start, then open ${link}`;
}

type Desktop = Pick<CommandContext, 'env' | 'isTerminal'> & { readonly platform: NodeJS.Platform };

/** Null without a desktop. */
export function findPageOpener({ env, isTerminal, platform }: Desktop): string | null {
  if (!isTerminal || env.CI || env.SSH_CONNECTION) return null;
  if (platform === 'darwin') return 'open';
  return env.DISPLAY || env.WAYLAND_DISPLAY ? 'xdg-open' : null;
}

export async function openDashboard(
  context: CommandContext,
  { link, isServing }: DemoDashboard,
): Promise<void> {
  const opener = findPageOpener({ ...context, platform: process.platform });
  if (opener === null || link === null || !isServing) return;
  // Other users of the machine can read program arguments, so a private file passes the key.
  const page = writeDemoPage(context.config.dataDir, link);
  const child = spawn(opener, [page], { detached: true, stdio: 'ignore', env: { ...context.env } });
  try {
    await once(child, 'spawn');
    child.unref();
  } catch (error) {
    context.stderr.write(`Cannot open a browser: ${error instanceof Error ? error.message : error}\n`);
  }
}
