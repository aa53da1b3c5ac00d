import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ReturnType<typeof ipaddr.parse>;

/** Where addresses of IPv6 that stand for one of IPv4 have its bytes; those of Teredo are inverted (RFC 4380). */
const embedded = [
  { network: ipaddr.IPv6.parseCIDR('::ffff:0:0/96'), at: 12, mask: 0 },
  { network: ipaddr.IPv6.parseCIDR('64:ff9b::/96'), at: 12, mask: 0 },
  { network: ipaddr.IPv6.parseCIDR('2002::/16'), at: 2, mask: 0 },
  { network: ipaddr.IPv6.parseCIDR('2001::/32'), at: 12, mask: 0xff },
] as const;

/** The only part of IPv6 that is given out (RFC 4291); the library takes the rest of it for public. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

function unwrapped(address: Address): Address {
  const found = embedded.find(({ network }) => address instanceof ipaddr.IPv6 && address.match(network));
  if (found === undefined) return address;
  const { at, mask } = found;
  const bytes = address.toByteArray().slice(at, at + 4);
  return new ipaddr.IPv4(bytes.map((byte) => byte ^ mask));
}

/** Whether a literal IP address is one of the public internet: not private, loopback, link-local, shared or reserved. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = unwrapped(ipaddr.parse(text));
  if (address instanceof ipaddr.IPv6 && !address.match(globalUnicast)) return false;
  return address.range() === 'unicast';
}

/** Whether a URL names an address that is not public. Those of a name are to be looked at when it is connected to. */
export function namesPrivateAddress({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) !== 0 && !isPublicAddress(host);
}
