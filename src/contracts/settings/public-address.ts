import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ReturnType<typeof ipaddr.parse>;

/** Position of the embedded IPv4 address; Teredo inverts its bytes (RFC 4380). */
const embeddedNetworks = [
  { network: ipaddr.IPv6.parseCIDR('::ffff:0:0/96'), at: 12, mask: 0 },
  { network: ipaddr.IPv6.parseCIDR('64:ff9b::/96'), at: 12, mask: 0 },
  { network: ipaddr.IPv6.parseCIDR('2002::/16'), at: 2, mask: 0 },
  { network: ipaddr.IPv6.parseCIDR('2001::/32'), at: 12, mask: 0xff },
] as const;

/** The only public part of IPv6 (RFC 4291). */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

function unwrapAddress(address: Address): Address {
  const found = embeddedNetworks.find(
    ({ network }) => address instanceof ipaddr.IPv6 && address.match(network),
  );
  if (found === undefined) return address;
  const { at, mask } = found;
  const bytes = address.toByteArray().slice(at, at + 4);
  return new ipaddr.IPv4(bytes.map((byte) => byte ^ mask));
}

/** False for private, loopback, link-local, shared and reserved addresses. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = unwrapAddress(ipaddr.parse(text));
  if (address instanceof ipaddr.IPv6 && !address.match(globalUnicast)) return false;
  return address.range() === 'unicast';
}

/** Literal addresses only: host names are checked when they are resolved. */
export function hasPrivateAddress({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) !== 0 && !isPublicAddress(host);
}
