/** Where people on this machine find the dashboard of a service. */
import { isLoopbackAuthority } from '../http/gate.js';

const anyAddress: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** The API's address for programs on this machine. @param host a name or an address, for IPv6 without brackets */
export function localAddress(host: string, port: number): string {
  const local = anyAddress[host] ?? host;
  return `http://${local.includes(':') ? `[${local}]` : local}:${port}`;
}

/**
 * @param key a development key, which the page takes from the fragment: a browser sends that to nobody
 * @returns null where such a key is refused, as it is at every other address than the machine's own
 */
export const dashboardLink = (address: string, key: string): string | null =>
  isLoopbackAuthority(new URL(address).host) ? `${address}/dashboard#key=${key}` : null;
