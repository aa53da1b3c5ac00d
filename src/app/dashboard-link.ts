import { isLoopbackAuthority } from '../http/gate.js';

const anyAddress: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** @param host IPv6 without brackets */
export function localAddress(host: string, port: number): string {
  const local = anyAddress[host] ?? host;
  return `http://${local.includes(':') ? `[${local}]` : local}:${port}`;
}

/**
 * Browsers do not send the fragment.
 * @returns null if the address is not loopback, because it rejects the key
 */
export const dashboardLink = (address: string, key: string): string | null =>
  isLoopbackAuthority(new URL(address).host) ? `${address}/dashboard#key=${key}` : null;
