/** Which requests come from the machine itself, for the development key. */
import { BlockList, isIP, isIPv6 } from 'node:net';
import { unauthorized } from './auth.js';
import type { Exchange } from './exchange.js';

const loopback = new BlockList();
// Also as ::ffff:127.0.0.0/104, which the list takes for the same.
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether a host, without port and brackets, is the machine itself whatever its resolver says. */
export function isLoopbackHost(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

const authority = /^(?:\[([\da-f:.]+)\]|([a-z\d.]+?)\.?)(?::\d{0,5})?$/i;

/** The same of a Host header. Of another name a page on the web may have said that it is this machine. */
export function isLoopbackAuthority(header: string): boolean {
  const [, literal, name] = authority.exec(header) ?? [];
  if (literal !== undefined) return isIPv6(literal) && isLoopbackHost(literal);
  return name !== undefined && isLoopbackHost(name);
}

/**
 * Lets a request with the development key pass that was made on this machine and went through no proxy.
 * @throws ApiError UNAUTHORIZED
 */
export function checkLocal(exchange: Exchange): void {
  const isLocal =
    isLoopbackHost(exchange.peer()) &&
    isLoopbackAuthority(exchange.header('host') ?? '') &&
    !exchange.headerNames().some(isOfProxy);
  if (isLocal) return;
  throw unauthorized(
    'The development key works on the machine itself only, without a proxy: make another one with npm run keys -- create',
  );
}

const isOfProxy = (name: string): boolean =>
  name === 'forwarded' || name === 'via' || name.startsWith('x-forwarded-');
