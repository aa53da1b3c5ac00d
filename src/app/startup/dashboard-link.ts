import { isLoopbackAuthority } from '../../http/gate.js';

const loopbackByWildcard: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** @param host IPv6 without brackets */
export function buildLocalUrl(host: string, port: number): string {
  const local = loopbackByWildcard[host] ?? host;
  return `http://${local.includes(':') ? `[${local}]` : local}:${port}`;
}

/**
 * Browsers do not send the fragment.
 * @returns null if the address is not loopback, because it rejects the key
 */
export const buildDashboardLink = (address: string, key: string): string | null =>
  isLoopbackAuthority(new URL(address).host) ? `${address}/dashboard#key=${key}` : null;
