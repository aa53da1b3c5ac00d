/** Hashes ids to 32 bits, so that learner records stay small. */

/** A fit reads item keys from the first bytes of stored item hashes. */
export const keySeed = 0x9747b28c;

/** 1 to 2^32 - 1. Collisions only blur a prediction. */
export const hashKey = (id: string): number => hashWithSeed(id, keySeed) || 1;

/** Similar to MurmurHash3. Hashes are stored: never change it. */
export function hashWithSeed(text: string, seed: number): number {
  let hash = seed;
  for (let i = 0; i < text.length; i++) {
    let unit = Math.imul(text.charCodeAt(i), 0xcc9e2d51);
    unit = Math.imul((unit << 15) | (unit >>> 17), 0x1b873593);
    hash ^= unit;
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  return mixBits(hash ^ text.length) >>> 0;
}

export function mixBits(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
