export { createSeededRandom as seeded } from '../../../src/seeded-random.js';

/** Draws from the standard normal distribution (Box-Muller). */
export function createNormal(random: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
