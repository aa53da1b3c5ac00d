export { createSeededRandom as seeded } from '../../../src/seeded-random.js';

/** One skill, or in three of ten cases two to four different ones, as fields of an event. */
export function drawSkills(skillIds: readonly string[], random: () => number) {
  const most = Math.min(4, skillIds.length);
  const count = most < 2 || random() < 0.7 ? 1 : 2 + Math.floor((most - 1) * random());
  const left = [...skillIds];
  const drawn = Array.from({ length: count }, () => left.splice(Math.floor(random() * left.length), 1)[0]);
  return count === 1 ? { skill_id: drawn[0] as string } : { skill_ids: drawn as string[] };
}

/** Draws from the standard normal distribution (Box-Muller). */
export function createNormal(random: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
