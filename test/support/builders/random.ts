export { createSeededRandom as seeded } from '../../../src/seeded-random.js';
