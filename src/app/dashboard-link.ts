import { isLoopbackAuthority } from '../http/gate.js';

const anyAddress: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** The API's address for programs on this machine. @param host IPv6 without brackets */
export function localAddress(host: string, port: number): string {
  const local = anyAddress[host] ?? host;
  return `http://${local.includes(':') ? `[${local}]` : local}:${port}`;
}

/**
 * The fragment with the key never leaves the browser. @returns null if the address is no loopback address: the key is
 * rejected there
 */
export const dashboardLink = (address: string, key: string): string | null =>
  isLoopbackAuthority(new URL(address).host) ? `${address}/dashboard#key=${key}` : null;
