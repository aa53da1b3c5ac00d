/** Bytes under which an item is kept: 64 bits make two of a million items meet with a chance of 3e-8. */
export const itemIdBytes = 8;

/**
 * Hash of an item id, for fields that must be short: two murmur3-like hashes of the UTF-16 code units. The same in
 * every process and for ever. Not against attackers: who picks ids that meet spoils his own items alone.
 */
export function hashItem(itemId: string): Buffer {
  const hash = Buffer.allocUnsafe(itemIdBytes);
  hash.writeUInt32LE(mix(itemId, 0x9747b28c), 0);
  hash.writeUInt32LE(mix(itemId, 0x3c6ef372), 4);
  return hash;
}

function mix(text: string, seed: number): number {
  let hash = seed;
  for (let i = 0; i < text.length; i++) {
    let unit = Math.imul(text.charCodeAt(i), 0xcc9e2d51);
    unit = Math.imul((unit << 15) | (unit >>> 17), 0x1b873593);
    hash ^= unit;
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  hash ^= text.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
